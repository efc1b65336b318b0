package serve

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/usercode"
)

// Check is a condition of a server's health besides its own, such as that the disk can be
// written.
type Check struct {
	// Name is that of the check in answers and paths, such as disk for /readyz/disk: letters,
	// digits, dashes and dots.
	Name string
	// Live makes the check one of /livez, too, and not only of /readyz. When /livez fails,
	// supervisors restart the process.
	Live bool
	// Why returns why the condition does not hold, nil if it does. It is called for each
	// request for the health, concurrently, and must not block. Clients, which need no
	// credentials for that, do not see the error: the log has it. A panic counts as an error.
	Why func() error
}

// The server's own checks, in the order in which /readyz lists them.
const (
	checkPing     = "ping"
	checkStorage  = "storage"
	checkShutdown = "shutdown"
)

var ownChecks = []string{checkPing, checkStorage, checkShutdown}

// healthPaths are the paths of health checks, without the slash.
var healthPaths = []string{"healthz", "livez", "readyz"}

// validateChecks returns an [*engine.ConfigError] for the first check that is wrong.
func validateChecks(checks []Check) error {
	names := slices.Clone(ownChecks)
	for i, check := range checks {
		field := fmt.Sprintf("Checks[%d]", i)
		switch {
		case check.Name == "" || strings.ContainsFunc(check.Name, isNotInCheckName):
			return &engine.ConfigError{Field: field, Problem: fmt.Sprintf("has the name %q; give letters, digits, dashes and dots", check.Name)}
		case slices.Contains(names, check.Name):
			return &engine.ConfigError{Field: field, Problem: fmt.Sprintf("has the name %s, which another one has; give it a name of its own", check.Name)}
		case check.Why == nil:
			return &engine.ConfigError{Field: field, Problem: "has no function Why; give it one"}
		}
		names = append(names, check.Name)
	}
	return nil
}

func isNotInCheckName(r rune) bool {
	return !(r == '-' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
}

// health answers the paths of health checks; done reports whether the request is for one.
func (c *call) health() (done bool) {
	name, only, found := c.healthCheck(c.req.Path)
	if !found || c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		return false
	}
	c.answerHealth(name, only)
	return true
}

// healthCheck returns the health check that a path names: all of name, or only one of them.
func (s *Server) healthCheck(path string) (name, only string, found bool) {
	name, only, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !slices.Contains(healthPaths, name) {
		return "", "", false
	}
	return name, only, only == "" || slices.Contains(ownChecks, only) ||
		slices.ContainsFunc(s.cfg.Checks, func(check Check) bool { return check.Name == only })
}

// answerHealth answers with the checks of one path, without those that the parameter exclude names, or
// with one check alone.
func (c *call) answerHealth(name, only string) {
	report := healthReport{only: only}
	if only == "" {
		report.excluded = c.req.query["exclude"]
	}
	ready := name == "readyz"
	for _, check := range ownChecks {
		report.add(check, func() string { return c.unready(check, ready) })
	}
	for i := range c.cfg.Checks {
		report.add(c.cfg.Checks[i].Name, func() string { return c.failing(i, ready) })
	}
	for _, check := range report.excluded {
		if _, _, found := c.healthCheck(name + "/" + check); !found {
			fmt.Fprintf(&report.text, "warn: there is no check %q to exclude\n", check)
		}
	}
	c.depart()
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	switch {
	case report.failed:
		c.w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(c.w, "%s%s check failed\n", report.text.String(), name)
	case c.req.query.Has("verbose"):
		fmt.Fprintf(c.w, "%s%s check passed\n", report.text.String(), name)
	default:
		fmt.Fprint(c.w, "ok")
	}
}

// healthReport lists checks as a verbose answer has them.
type healthReport struct {
	only     string // the one check to report; "" means all
	excluded []string
	text     strings.Builder
	failed   bool
}

// add reports a check by why, which returns the problem, "" for none.
func (r *healthReport) add(check string, why func() string) {
	if r.only != "" && check != r.only {
		return
	}
	if slices.Contains(r.excluded, check) {
		fmt.Fprintf(&r.text, "[+]%s excluded: ok\n", check)
	} else if problem := why(); problem != "" {
		r.failed = true
		fmt.Fprintf(&r.text, "[-]%s failed: %s\n", check, problem)
	} else {
		fmt.Fprintf(&r.text, "[+]%s ok\n", check)
	}
}

// unready returns why one of the server's own checks fails; "" means that it does not. All are of
// readiness alone: whether a restart helps, if storage has ended for good, the server cannot know.
func (s *Server) unready(check string, ready bool) string {
	switch {
	case !ready:
	case check == checkStorage:
		return s.unserved()
	case check == checkShutdown && s.draining.Load() > serving:
		return "the server is shutting down"
	}
	return ""
}

// failing returns what clients see of why check i of the program fails; "" means that it does not.
func (s *Server) failing(i int, ready bool) string {
	check := &s.cfg.Checks[i]
	if !ready && !check.Live {
		return ""
	}
	var why error
	if panicked := usercode.Call("Config.Checks", check.Name, func() { why = check.Why() }); panicked != nil {
		why = errors.Join(why, panicked)
	}
	if why == nil {
		return ""
	}
	s.unhealthy[i].log(s.log, "a health check fails", "check", check.Name, "error", why)
	return "the server's log says why"
}
