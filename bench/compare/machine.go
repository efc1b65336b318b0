package compare

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/watchmill/watchmill/internal/machine"
)

// Machine describes where a report was made, and of which source.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	OS    string `json:"os"`
	Go    string `json:"go"`
	// Revision is that of the source, with a + if it was changed since; "" if it
	// is not known.
	Revision string `json:"revision,omitempty"`
	// Load is the machine's load averages at the start: 1, 5 and 15 minutes; ""
	// if they are not known. On a quiet machine they are near zero.
	Load string `json:"load,omitempty"`
	// RealTime: the run has real-time scheduling, as under chrt, which keeps other programs
	// from its processors. It is known on Linux only.
	RealTime bool `json:"realTime,omitempty"`
}

// ThisMachine describes this machine.
func ThisMachine(ctx context.Context) Machine {
	return Machine{
		CPU: cmp.Or(machine.CPU(), runtime.GOARCH), Cores: runtime.GOMAXPROCS(0), OS: runtime.GOOS + "/" + runtime.GOARCH,
		Go: runtime.Version(), Revision: revision(ctx), Load: load(), RealTime: realTime(),
	}
}

// String returns the description in one line.
func (m Machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s, %s", m.CPU, m.Cores, m.OS, m.Go)
	if m.Revision != "" {
		s += ", revision " + m.Revision
	}
	if m.Load != "" {
		s += ", load at the start " + m.Load
	}
	if m.RealTime {
		s += ", with real-time scheduling"
	}
	return s + "."
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	if fields := strings.Fields(string(text)); len(fields) >= 3 {
		return strings.Join(fields[:3], " ")
	}
	return ""
}

// realTime reports whether this process has a real-time policy: number 1 or 2 in field 41 of
// its line of figures.
func realTime() bool {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return false
	}
	_, figures, _ := strings.Cut(string(text), ") ") // after the number and the program's name
	fields := strings.Fields(figures)
	return len(fields) > 38 && (fields[38] == "1" || fields[38] == "2")
}

// revision asks git, since programs built by go run have no VCS information.
func revision(ctx context.Context) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return ""
	}
	rev := strings.TrimSpace(string(head))
	if changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain").Output(); err != nil || len(changes) > 0 {
		rev += "+"
	}
	return rev
}
