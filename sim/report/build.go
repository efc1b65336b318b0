package report

import (
	"bufio"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Build is the program and the machine that a run was made with.
type Build struct {
	// Revision is the commit that the program was built from, "" if it does not
	// know; Modified says that there were changes besides.
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	// CPU is the model, "" if the system does not tell; CPUs how many there are,
	// Procs how many Go used.
	CPU   string `json:"cpu,omitempty"`
	CPUs  int    `json:"cpus"`
	Procs int    `json:"procs"`
}

// ThisBuild describes the running program and its machine.
func ThisBuild() Build {
	b := Build{
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		CPU: cpuModel(), CPUs: runtime.NumCPU(), Procs: runtime.GOMAXPROCS(0),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	return b
}

// cpuModel asks Linux; other systems do not tell without their own libraries.
func cpuModel() string {
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
