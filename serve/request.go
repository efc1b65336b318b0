package serve

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/serve/internal/inflight"
	"github.com/watchmill/watchmill/serve/internal/params"
	"github.com/watchmill/watchmill/serve/internal/status"
)

// Request is what a request asks for, in the form that authorisation and audit use.
type Request struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection, or empty
	// for a method that resources do not have, such as OPTIONS; for a path that is not a
	// resource it is the method in lower case.
	Verb string
	// Group, Version, Resource and Subresource name the resource; all are empty for other
	// paths, and Group is for those of the core group.
	Group, Version, Resource, Subresource string
	// Namespace and Name are empty if the request does not name one. The field selector
	// metadata.name=x also sets Name. The path of a creation has no name, so that
	// [Config].Authorize decides without it; [Config].Audit gets that of the object.
	Namespace, Name string
	// Labels and Fields are the selectors as the client wrote them, of a list, a watch or a
	// deletecollection. They are empty for other verbs, which do not select by them.
	Labels, Fields string
	// Path is the decoded path.
	Path string

	query  url.Values
	dryRun bool // the body of a deletion asks for one
}

// IsResource reports whether the request is for a resource.
func (r *Request) IsResource() bool { return r.Resource != "" }

// parse takes a request apart. The error is a Status; then r is as it was.
func (r *Request) parse(from *http.Request) error {
	segments, err := split(from.URL.EscapedPath())
	if err != nil {
		return err
	}
	query, err := url.ParseQuery(from.URL.RawQuery)
	if err != nil {
		return status.BadRequest("the query does not parse: %v", err)
	}
	path := "/" + strings.Join(segments, "/")
	if path == from.URL.Path {
		path = from.URL.Path // which is there as long as the request
	}
	parsed := Request{Verb: strings.ToLower(from.Method), Path: path, query: query}
	if rest := parsed.takeGroupVersion(segments); len(rest) > 0 {
		if err := parsed.parseResource(from.Method, rest); err != nil {
			return err
		}
	}
	*r = parsed
	return nil
}

// parseResource takes apart what is behind the version in the path of a resource. The error is a Status.
func (r *Request) parseResource(method string, rest []string) error {
	// Before the parameter watch, clients wrote it in the path, and some still do.
	olderWatch := method == http.MethodGet && rest[0] == "watch" && len(rest) > 1
	if olderWatch {
		rest = rest[1:]
	}
	if rest[0] == "namespaces" && len(rest) >= 3 && !isOfNamespace(rest[2]) {
		r.Namespace, rest = rest[1], rest[2:]
	}
	if len(rest) > 3 || olderWatch && len(rest) > 2 {
		return status.NotServed()
	}
	rest = append(rest, "", "")
	r.Resource, r.Name, r.Subresource = rest[0], rest[1], rest[2]
	r.Verb = verbOf(method, r.Name != "", r.query)
	if olderWatch {
		r.Verb = "watch"
	}
	if r.selects() {
		r.Labels, r.Fields = r.query.Get("labelSelector"), r.query.Get("fieldSelector")
	}
	if olderWatch {
		r.selectName()
	}
	r.nameFromSelector()
	return nil
}

// selectName adds the name in the path, if there is one, to the field selector.
func (r *Request) selectName() {
	if r.Name == "" {
		return
	}
	selectors := []string{"metadata.name=" + fields.EscapeValue(r.Name)}
	if r.Fields != "" {
		selectors = append(selectors, r.Fields)
	}
	r.Fields = strings.Join(selectors, ",")
}

// takeGroupVersion sets the group and version of a resource's path, and returns the segments
// behind them: none if the path is not a resource's.
func (r *Request) takeGroupVersion(segments []string) []string {
	switch {
	case len(segments) >= 3 && segments[0] == "api":
		r.Version = segments[1]
		return segments[2:]
	case len(segments) >= 4 && segments[0] == "apis":
		r.Group, r.Version = segments[1], segments[2]
		return segments[3:]
	}
	return nil
}

// isOfNamespace reports whether what follows a namespace in the path is a subresource of the
// namespace, and not a resource in it.
func isOfNamespace(segment string) bool {
	return segment == "status" || segment == "finalize"
}

// split returns the segments of an escaped path, each decoded by itself.
func split(escaped string) ([]string, error) {
	trimmed := strings.Trim(escaped, "/")
	if trimmed == "" {
		return nil, nil
	}
	segments := strings.Split(trimmed, "/")
	for i, s := range segments {
		decoded, err := url.PathUnescape(s)
		if err != nil || decoded == "" || decoded == "." || decoded == ".." || strings.ContainsAny(decoded, "/%\\\x00") {
			return nil, status.BadRequest("the path segment %q is not allowed: it must not be empty, . or .., or contain a slash, a backslash or a percent sign", s)
		}
		segments[i] = decoded
	}
	return segments, nil
}

// verbOf returns the verb of a method on a resource, and "" for other methods: a client may
// send one that is spelled like a verb. HEAD never watches: the answer would be a header, and
// last until the client leaves.
func verbOf(method string, named bool, query url.Values) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		switch {
		case named:
			return "get"
		case method == http.MethodGet && params.IsTrue(query, "watch"):
			return "watch"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	return ""
}

// nameFromSelector takes the name from a field selector that fixes it.
func (r *Request) nameFromSelector() {
	if r.Name != "" || r.Fields == "" || !r.selects() {
		return
	}
	if selector, err := fields.ParseSelector(r.Fields); err == nil {
		r.Name, _ = selector.RequiresExactMatch("metadata.name")
	}
}

// selects reports whether the request is for the objects that selectors match. Its Name is one that they
// fix, except for an older watch, which may have it in the path.
func (r *Request) selects() bool {
	return r.Verb == "list" || r.Verb == "watch" || r.Verb == "deletecollection"
}

// reads reports whether the request changes nothing.
func (r *Request) reads() bool {
	return slices.Contains([]string{"get", "list", "watch", "head", "options"}, r.Verb)
}

// limitedAs returns by which limits the request is bounded.
func (r *Request) limitedAs() inflight.Sort {
	switch {
	case r.Verb == "watch" && r.IsResource():
		return inflight.Watch
	case r.reads():
		return inflight.Read
	}
	return inflight.Write
}

// timeLimit returns how long the request may take: what the limits allow, or less if the
// parameter timeout says so. A watch has parameters of its own for that. The deletion of a
// collection may take as long as a list, as in Kubernetes.
func (r *Request) timeLimit(of *Limits) (time.Duration, error) {
	limit := of.WriteTimeout
	switch {
	case r.reads():
		limit = of.ReadTimeout
	case r.Verb == "deletecollection":
		limit = max(limit, of.ReadTimeout)
	}
	text := r.query.Get("timeout")
	if text == "" || r.Verb == "watch" {
		return limit, nil
	}
	asked, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, status.BadRequest("invalid timeout specified in the request URL: %q is not a duration such as 5s", text)
	case asked > 0:
		limit = min(limit, asked)
	}
	return limit, nil
}

// subject is what an error of the request is about.
func (r *Request) subject() status.Subject {
	acts := r.Verb == "create" && r.Subresource != ""
	return status.Subject{Resource: schema.GroupResource{Group: r.Group, Resource: r.Resource}, Name: r.Name, Verb: r.Verb, Acts: acts}
}
