package serve

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// guard refuses requests that a foreign web page could make a browser send.
func (c *call) guard() error {
	if !c.knownHost(c.r.Host) {
		return badRequest("the host %q is not served: call the server by its address, or add the name to those of the server (serve.Config.Hosts, or watchmill serve --host)", c.r.Host)
	}
	if err := c.origins.Check(c.r); err != nil {
		return apierrors.NewForbidden(schema.GroupResource{}, "", err)
	}
	if c.cfg.WebSocket == nil {
		return nil
	}
	var err error
	c.upgrades, err = c.cfg.WebSocket.Wants(c.r)
	return err
}

// knownHost reports whether a Host header may be served. All IP addresses may: a page
// whose name resolves to this server (DNS rebinding) still sends its name as the host.
func (s *Server) knownHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || s.hosts[name]
}

// Bounds of the warnings of a response, in runes: of all together, and of each if all
// together exceed theirs.
const (
	warningsLimit   = 4096
	warningCutLimit = 256
)

// warnings are the texts of Warning headers, without repetitions.
type warnings struct {
	texts []string
	known map[string]bool
}

func (w *warnings) add(text string) {
	if w.known[text] {
		return
	}
	if w.known == nil {
		w.known = map[string]bool{}
	}
	w.known[text] = true
	w.texts = append(w.texts, text)
}

// flush sets the headers.
func (w *warnings) flush(h http.Header) {
	total := 0
	for _, text := range w.texts {
		total += utf8.RuneCountInString(text)
	}
	used := 0
	for _, text := range w.texts {
		runes := []rune(printable(text))
		if total > warningsLimit {
			runes = runes[:min(len(runes), warningCutLimit)]
		}
		if used += len(runes); used > warningsLimit {
			break
		}
		h.Add("Warning", `299 - "`+quoteEscaper.Replace(string(runes))+`"`)
	}
	w.texts, w.known = nil, nil
}

var quoteEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// printable replaces the characters that a header cannot hold.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}
