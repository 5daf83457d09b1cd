# Helpers for the benchmarks: times in microseconds, ratios against their bars.

MISSED=0

now_us() { echo "${EPOCHREALTIME/./}"; }
median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

took() { # COMMAND…: how long it takes
	local start=${EPOCHREALTIME/./}
	"$@" >/dev/null
	echo $((${EPOCHREALTIME/./} - start))
}

report() { # WHAT MEASURED REFERENCE BAR: their ratio must not be above the bar
	local line
	line=$(awk -v what="$1" -v a="$2" -v b="$3" -v bar="$4" 'BEGIN {
		ratio = a / b
		printf "%-34s %10.1f / %10.1f = %5.2f  (bar %s) %s", what, a, b, ratio, bar, ratio <= bar ? "ok" : "MISSED"
	}')
	echo "$line" | tee -a /mnt/results/report.txt
	[[ $line == *ok ]] || MISSED=1
}

bars_met() { [ "$MISSED" = 0 ] || fail "bars were missed"; }
