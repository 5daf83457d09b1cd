# title: an init that hangs stands at "coming", is deaf to signals, and ends when the test says so
# set: ofed

fault nvidia 0 1 60000
modprobe nvidia-peermem &
loader=$!
eventually 10 grep -q coming /sys/module/nvidia/initstate
kill -9 $loader
stays 3 grep -q coming /sys/module/nvidia/initstate
clear_faults
eventually 10 live nvidia
absent nvidia_peermem

note "a delay comes before the failure"
rmmod nvidia
fault nvidia 19 1 2000
begin=$SECONDS
fails_with 'No such device' modprobe nvidia
[ $((SECONDS - begin)) -ge 1 ]
