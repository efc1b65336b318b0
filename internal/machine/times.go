package machine

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// ticks are the processors' times since the machine has started, in the system's unit.
type ticks struct {
	// all is everything, idle included; busy is what programs had, own what this
	// process and its children had; stolen went to other machines on the same host.
	all, busy, own, stolen float64
}

// readTicks reads the times; ok is false where the system does not report it.
func readTicks() (t ticks, ok bool) {
	machine, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t, false
	}
	self, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return t, false
	}
	return parseTicks(string(machine), string(self))
}

// parseTicks reads the two files of Linux.
func parseTicks(machine, self string) (t ticks, ok bool) {
	line, _, _ := strings.Cut(machine, "\n")
	fields := strings.Fields(line)          // cpu user nice system idle iowait irq softirq steal ...
	end := strings.LastIndexByte(self, ')') // of the command's name, which may have any bytes
	mine := strings.Fields(self[end+1:])    // from the third on: state ... utime is the 14th
	if len(fields) < 9 || fields[0] != "cpu" || end < 0 || len(mine) < 15 {
		return t, false
	}
	for i, text := range fields[1:9] {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return t, false
		}
		t.all += v
		switch i {
		case 3, 4: // idle, waiting
		case 7:
			t.stolen = v
		default:
			t.busy += v
		}
	}
	for _, text := range mine[11:15] {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return t, false
		}
		t.own += v
	}
	return t, true
}

// taken returns the share of the processors that others have had since before. It is no more than all of them: the
// time of waiting, which is a part of all, can go back.
func (t ticks) taken(before ticks) float64 {
	all := t.all - before.all
	if all <= 0 {
		return 0
	}
	others := (t.busy - before.busy) - (t.own - before.own) + (t.stolen - before.stolen)
	return min(1, max(0, others/all))
}

// Others measures how much of the processors others have: other programs, and other
// machines on the same host. It belongs to one goroutine.
type Others struct {
	last  ticks
	known bool
}

// WatchOthers begins to measure.
func WatchOthers() *Others {
	o := &Others{}
	o.last, o.known = readTicks()
	return o
}

// Share returns the share of the processors that others have had since the last call, or
// since the beginning, between 0 and 1; 0 where the system does not report it. Linux counts
// in hundredths of a second: over less than a quarter of one, the share is noise.
func (o *Others) Share() float64 {
	next, ok := readTicks()
	if !ok || !o.known {
		return 0
	}
	share := next.taken(o.last)
	o.last = next
	return share
}

// CPU returns the model of the processor; "" on systems other than Linux, and where Linux
// does not name it.
func CPU() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
