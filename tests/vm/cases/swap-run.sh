# title: driver installations without any lock, with a trial of the new build, are never disturbed
# needs: deb
# rounds: 2
# proof: 20 900
# timeout: 180

. /mnt/tests/guest/driver.sh

wait_state ready registered
builds 7 8

for round in $(seq "$ROUNDS"); do
	build=$((7 + round % 2))
	before=$(property AttemptCount)
	note "round $round: build $build"
	run_installer "$build"
	eventually 30 live nvidia_peermem
	wait_state ready registered
	runs_build "$build"
	is "steps" "$(property AttemptCount)" $((before + 1))
done
