# title: driver upgrades by dpkg, whose scripts take the whole stack out, are never disturbed
# needs: deb
# rounds: 2
# proof: 20 900
# timeout: 180

. /mnt/tests/guest/driver.sh

wait_state ready registered
builds 7 8
packages 7 8

for round in $(seq "$ROUNDS"); do
	build=$((7 + round % 2))
	before=$(property AttemptCount)
	note "round $round: build $build"
	dpkg --install "/tmp/driver-$build.deb"
	eventually 30 live nvidia_peermem
	wait_state ready registered
	runs_build "$build"
	is "steps" "$(property AttemptCount)" $((before + 1))
	matches "history" "$(history)" '"Actor" s "(dpkg|rmmod \(dpkg\))"'
done
