package serve

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/accept"
	"github.com/watchmill/watchmill/serve/internal/catalog"
	"github.com/watchmill/watchmill/serve/internal/status"
)

// documents are the answers besides the resources: the catalog, the version, and the list of paths.
type documents struct{ *catalog.Catalog }

// newDocuments returns the documents of a server and of these resources.
func newDocuments(of []*served, cfg *Config) *documents {
	resources := make([]*registry.Info, 0, len(of))
	for _, r := range of {
		resources = append(resources, r.info)
	}
	d := &documents{catalog.New(resources, ProtocolVersion)}
	d.ByPath["/version"] = catalog.NewDocument(versionInfo(cfg.Version), accept.JSON)
	d.ByPath["/"] = catalog.NewDocument(map[string][]string{"paths": d.paths(cfg.Checks)}, accept.JSON)
	return d
}

// paths returns the paths of the documents and of the health checks, for clients that look around.
func (d *documents) paths(checks []Check) []string {
	all := slices.AppendSeq([]string{"/openapi/v2"}, maps.Keys(d.ByPath))
	names := slices.Clone(ownChecks)
	for _, check := range checks {
		names = append(names, check.Name)
	}
	for _, path := range healthPaths {
		all = append(all, "/"+path)
		for _, name := range names {
			all = append(all, "/"+path+"/"+name)
		}
	}
	slices.Sort(all)
	return all
}

// find returns the document for a request, in the form that the client prefers; nil if its path has
// none.
func (d *documents) find(c *call) (*catalog.Document, error) {
	if agg := d.Aggregated[c.req.Path]; agg != nil {
		c.w.Header().Add("Vary", "Accept")
		aggregated, err := accept.Aggregated(c.r)
		if err != nil {
			return nil, err
		}
		if aggregated {
			return agg, nil
		}
	}
	if c.req.Path == "/openapi/v2" {
		c.w.Header().Add("Vary", "Accept")
		if strings.Contains(c.r.Header.Get("Accept"), "proto-openapi.spec.v2") {
			return d.V2Protobuf(), nil
		}
		return d.V2JSON(), nil
	}
	return d.ByPath[c.req.Path], nil
}

// serve answers a request for a document.
func (d *documents) serve(c *call) error {
	doc, err := d.find(c)
	if err != nil {
		return err
	}
	_, _, ofHealth := c.healthCheck(c.req.Path)
	switch {
	case doc == nil && ofHealth: // health has answered the methods that there are
		return c.methodNotAllowed()
	case doc == nil:
		return status.NotServed()
	case c.r.Method != http.MethodGet && c.r.Method != http.MethodHead:
		return c.methodNotAllowed()
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
	version = cmp.Or(version, ProtocolVersion)
	parts := append(strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3), "", "")
	return map[string]string{
		"major": parts[0], "minor": parts[1], "gitVersion": version, "gitCommit": "", "gitTreeState": "",
		"buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "gc", "platform": "",
	}
}
