package serve

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/catalog"
)

// documents are the answers beside the resources: the catalog, the version, and health.
type documents struct{ *catalog.Catalog }

// newDocuments returns the documents of a server of that version, "" for the protocol's, and
// of these resources.
func newDocuments(of []served, version string) *documents {
	resources := make([]*registry.Info, 0, len(of))
	for _, r := range of {
		resources = append(resources, r.info)
	}
	d := &documents{catalog.New(resources, ProtocolVersion)}
	d.ByPath["/version"] = catalog.NewDocument(versionInfo(version), jsonType)
	return d
}

// serve answers a request for a document.
func (d *documents) serve(c *call) error {
	doc := d.ByPath[c.req.Path]
	if agg := d.Aggregated[c.req.Path]; agg != nil {
		c.w.Header().Add("Vary", "Accept")
		s, _, err := negotiate(c.r, true, false)
		if err != nil {
			return err
		}
		if s == aggregated {
			doc = agg
		}
	}
	if c.req.Path == "/openapi/v2" {
		c.w.Header().Add("Vary", "Accept")
		if strings.Contains(c.r.Header.Get("Accept"), "proto-openapi.spec.v2") {
			doc = d.V2Protobuf()
		} else {
			doc = d.V2JSON()
		}
	}
	_, _, ofHealth := healthCheck(c.req.segments)
	switch {
	case doc == nil && ofHealth: // health has answered the methods that there are
		return methodNotAllowed(c)
	case doc == nil:
		return notServed()
	case c.r.Method != http.MethodGet && c.r.Method != http.MethodHead:
		return methodNotAllowed(c)
	}
	h := c.w.Header()
	h.Set("Content-Type", doc.ContentType)
	h.Set("ETag", doc.ETag)
	h.Set("Cache-Control", "public")
	if hash := c.req.query.Get("hash"); hash != "" && `"`+hash+`"` == doc.ETag {
		h.Set("Cache-Control", "public, immutable")
	}
	for tag := range strings.SplitSeq(c.r.Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(tag), "W/") == doc.ETag {
			c.w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	c.write(doc.Body)
	return nil
}

// versionInfo is the answer to /version.
func versionInfo(version string) map[string]string {
	if version == "" {
		version = ProtocolVersion
	}
	parts := append(strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3), "", "")
	return map[string]string{
		"major": parts[0], "minor": parts[1], "gitVersion": version, "gitCommit": "", "gitTreeState": "",
		"buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "gc", "platform": "",
	}
}

// checks are the conditions of readiness, in the order in which /readyz lists them.
var checks = []string{"ping", "storage", "shutdown"}

// unready returns why a condition of readiness does not hold; "" means that it does.
func (c *call) unready(check string) string {
	switch check {
	case "storage":
		return c.starting()
	case "shutdown":
		if c.draining.Load() > serving {
			return "the server is shutting down"
		}
	}
	return ""
}

// health answers the paths of health checks; done reports whether the request is for one.
func (c *call) health() (done bool) {
	name, only, found := healthCheck(c.req.segments)
	if !found || c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		return false
	}
	c.tellHealth(name, only)
	return true
}

// healthCheck returns the health check that a path names: all of name, or only one of them.
func healthCheck(segments []string) (name, only string, found bool) {
	if len(segments) == 0 || len(segments) > 2 || !slices.Contains([]string{"healthz", "livez", "readyz"}, segments[0]) {
		return "", "", false
	}
	if len(segments) == 2 {
		only = segments[1]
	}
	return segments[0], only, only == "" || slices.Contains(checks, only)
}

// tellHealth answers with the checks of one path, or of one check alone.
func (c *call) tellHealth(name, only string) {
	var text strings.Builder
	healthy := true
	for _, check := range checks {
		if only != "" && check != only {
			continue
		}
		why := ""
		if name == "readyz" {
			why = c.unready(check)
		}
		if why != "" {
			healthy = false
			fmt.Fprintf(&text, "[-]%s failed: %s\n", check, why)
			continue
		}
		fmt.Fprintf(&text, "[+]%s ok\n", check)
	}
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	switch {
	case !healthy:
		c.w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(c.w, "%s%s check failed\n", text.String(), name)
	case c.req.query.Has("verbose"):
		fmt.Fprintf(c.w, "%s%s check passed\n", text.String(), name)
	default:
		fmt.Fprint(c.w, "ok")
	}
}
