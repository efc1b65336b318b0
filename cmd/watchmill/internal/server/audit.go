package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/draft"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/serve"
)

// auditLog writes a line of JSON for each request for a resource to a file, and for each that was
// refused. No request waits for it:
//
//	request ──▶ lines ──▶ one goroutine ──▶ FILE, made again when it was renamed
//	               └── full, or the disk is: lost, which a later line says
//
// A nil one writes nothing.
type auditLog struct {
	name  string
	log   *slog.Logger
	lines chan []byte
	stop  chan struct{}
	done  sync.WaitGroup
	bytes atomic.Int64  // of lines
	lost  atomic.Uint64 // lines that were not written

	// The rest is the goroutine's.
	file   *os.File
	told   uint64 // of lost, in the file
	looked time.Time
	torn   bool // the file may end within a line
}

const (
	// maxAuditLines is how many lines wait for the disk at most, and maxAuditBytes how long they are
	// together: a client may ask for names of 64 KiB.
	maxAuditLines = 10_000
	maxAuditBytes = 16 << 20
	// auditLook is the time between two looks at whether the file was renamed.
	auditLook = time.Second
)

// openAudit opens the file of --audit-log, nil if there is none.
func (o *Options) openAudit(log *slog.Logger) (*auditLog, error) {
	if o.AuditLog == "" {
		return nil, nil
	}
	if of := o.flagOf(o.AuditLog); of != "" {
		return nil, &engine.ConfigError{Field: "--audit-log", Problem: fmt.Sprintf("is the file of %s; give another one", of)}
	}
	a := &auditLog{name: o.AuditLog, log: log, lines: make(chan []byte, maxAuditLines), stop: make(chan struct{})}
	if err := a.open(); err != nil {
		return nil, unwritten("--audit-log", err)
	}
	a.done.Go(a.run)
	return a, nil
}

// flagOf returns the flag of another option that names the same file, "" if there is none.
func (o *Options) flagOf(name string) string {
	place, inFile := strings.CutPrefix(o.Data, "bolt:")
	if !inFile {
		place = ""
	}
	for _, other := range []struct{ flag, file string }{
		{"--data", place}, {"--snapshot", o.Snapshot}, {"--kubeconfig", o.Kubeconfig}, {"--token-file", o.TokenFile}, {"--tls-cert", o.CertFile},
		{"--tls-key", o.KeyFile}, {"--client-ca", o.ClientCAFile}, {"--upstream-token-file", o.UpstreamTokenFile},
	} {
		if other.file != "" && draft.SameFile(name, other.file) {
			return other.flag
		}
	}
	if slices.ContainsFunc(o.CRDs, func(manifest string) bool { return draft.SameFile(name, manifest) }) {
		return "--crd"
	}
	return ""
}

func (a *auditLog) open() (err error) {
	a.file, err = os.OpenFile(a.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	a.torn = err == nil && endsTorn(a.name)
	return err
}

// endsTorn reports whether a file ends within a line, as after the process that wrote it was killed. A
// file that cannot be read, such as a pipe, counts as whole.
func endsTorn(name string) bool {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return false // opening a pipe would wait for a writer
	}
	file, err := os.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	var last [1]byte
	n, _ := file.ReadAt(last[:], info.Size()-1) // of an empty file, nothing
	return n == 1 && last[0] != '\n'
}

// auditLine is a line of the file.
type auditLine struct {
	Time         time.Time `json:"time"`
	User         string    `json:"user"`
	Impersonated string    `json:"impersonated,omitempty"`
	From         string    `json:"from,omitempty"`
	Verb         string    `json:"verb,omitempty"`
	Group        string    `json:"group,omitempty"`
	Version      string    `json:"version,omitempty"`
	Resource     string    `json:"resource,omitempty"`
	Subresource  string    `json:"subresource,omitempty"`
	Namespace    string    `json:"namespace,omitempty"`
	Name         string    `json:"name,omitempty"`
	Path         string    `json:"path,omitempty"`
	Code         int       `json:"code"`
	Seconds      float64   `json:"seconds"`
}

// request is the [serve.Config].Audit of the server.
func (a *auditLog) request(_ context.Context, e serve.Audited) {
	r := e.Request
	if !r.IsResource() && e.Code < 400 {
		return // discovery and health
	}
	line := auditLine{
		Time: e.Began.UTC(), User: e.User.Name, From: e.From, Verb: r.Verb, Group: r.Group, Version: r.Version, Resource: r.Resource,
		Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name, Code: e.Code, Seconds: e.Took.Seconds(),
	}
	if e.Impersonated != nil {
		line.Impersonated = e.Impersonated.Name
	}
	if !r.IsResource() {
		line.Path = r.Path
	}
	text, err := json.Marshal(line)
	if err != nil {
		a.lost.Add(1) // cannot happen: it is strings and numbers
		return
	}
	text = append(withoutControls(text), '\n')
	if a.bytes.Add(int64(len(text))) <= maxAuditBytes {
		select {
		case a.lines <- text:
			return
		default:
		}
	}
	a.bytes.Add(-int64(len(text)))
	a.lost.Add(1)
}

// withoutControls escapes the control characters that JSON may have as they are. A client chooses paths and names,
// and a terminal that shows the file would obey them.
func withoutControls(line []byte) []byte {
	if !bytes.ContainsFunc(line, unicode.IsControl) {
		return line
	}
	var escaped []byte
	for _, r := range string(line) {
		if unicode.IsControl(r) {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		} else {
			escaped = utf8.AppendRune(escaped, r)
		}
	}
	return escaped
}

// run writes the lines until stop is closed, and then those that wait.
func (a *auditLog) run() {
	for {
		select {
		case line := <-a.lines:
			a.write(line)
		case <-a.stop:
			a.writeWaiting()
			return
		}
	}
}

// writeWaiting writes the lines that wait.
func (a *auditLog) writeWaiting() {
	for {
		select {
		case line := <-a.lines:
			a.write(line)
		default:
			return
		}
	}
}

// write writes a line, and before it one that says how many were lost since the last.
func (a *auditLog) write(line []byte) {
	defer a.bytes.Add(-int64(len(line)))
	if err := a.follow(); err != nil {
		a.lose(err)
		return
	}
	text := line
	lost := a.lost.Load()
	if lost > a.told {
		note, _ := json.Marshal(map[string]any{"time": time.Now().UTC(), "lost": lost - a.told}) // of a number and a time
		text = append(append(note, '\n'), line...)
	}
	if a.torn {
		text = append([]byte{'\n'}, text...)
	}
	if n, err := a.file.Write(text); err != nil {
		a.torn = a.torn || n > 0
		a.lose(err)
		return
	}
	a.torn, a.told = false, lost
}

// lose counts a line that cannot be written.
func (a *auditLog) lose(err error) {
	a.lost.Add(1)
	a.log.Error("a line of the audit log is lost", "file", a.name, "error", err)
}

// follow opens the file again if it was renamed or removed, for example by logrotate.
func (a *auditLog) follow() error {
	if a.file != nil && time.Since(a.looked) < auditLook {
		return nil
	}
	a.looked = time.Now()
	if a.file != nil {
		there, err := os.Stat(a.name)
		mine, own := a.file.Stat()
		if err == nil && own == nil && os.SameFile(there, mine) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		_ = a.file.Close() // each line was written
	}
	return a.open()
}

// close writes what waits, and closes the file, unless its disk hangs.
func (a *auditLog) close() error {
	if a == nil {
		return nil
	}
	close(a.stop)
	if !endsSoon(&a.done) {
		return fmt.Errorf("--audit-log: writing to %s has hung for %v: its last %d lines are lost", a.name, hangAfter, len(a.lines)+1)
	}
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

// collectors are the metrics of the log.
func (a *auditLog) collectors() []prometheus.Collector {
	if a == nil {
		return nil
	}
	return []prometheus.Collector{prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "watchmill_audit_lines_lost_total", Help: "Lines of the audit log that were not written.",
	}, func() float64 { return float64(a.lost.Load()) })}
}
