package serve

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/serve/internal/params"
	"github.com/watchmill/watchmill/serve/internal/status"
)

// target is what a request is for.
type target struct {
	*served // the resource, or notFound
	req     *Request
}

// key returns the key of the object that the request names.
func (t *target) key() string { return t.info.Kind.Key(t.req.Namespace, t.req.Name) }

// params returns what the request's parameters are read from.
func (t *target) params() params.Request {
	return params.Request{
		Verb: t.req.Verb, Group: t.req.Group, Version: t.req.Version, Resource: t.req.Resource, Namespace: t.req.Namespace,
		Labels: t.req.Labels, Fields: t.req.Fields, Query: t.req.query, Kind: &t.info.Kind,
	}
}

// ofAllNamespaces reports whether the path has no namespace, although the kind has them.
func (t *target) ofAllNamespaces() bool {
	return !t.info.Kind.ClusterScoped && t.req.Namespace == ""
}

// hasPath reports whether the request's path fits the scope of the resource.
func (t *target) hasPath() bool {
	switch {
	case t.info.Kind.ClusterScoped:
		return t.req.Namespace == ""
	case t.ofAllNamespaces():
		return t.req.selects() || t.req.Name == ""
	}
	return true
}

// hasVerb reports whether the path has the request's verb.
func (t *target) hasVerb() bool {
	switch {
	case !slices.Contains(t.info.Verbs, t.req.Verb), t.ofAllNamespaces() && !t.req.reads():
		return false
	case t.req.Verb == "create":
		return t.req.Name == "" || t.req.Subresource != ""
	}
	return t.req.selects() || t.req.Name != ""
}

// verbMethods are the methods of the verbs, of a whole resource and of one object.
var (
	verbMethods    = map[string]string{"list": "GET, HEAD", "create": "POST", "deletecollection": "DELETE"}
	verbMethodsOne = map[string]string{"get": "GET, HEAD", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
)

// methods lists the methods of the request's path. Paths other than the resources' are read only.
func (t *target) methods() string {
	if t.resource == nil {
		return "GET, HEAD"
	}
	methods := verbMethods
	if t.req.Name != "" && !t.req.selects() {
		methods = verbMethodsOne
	}
	var all []string
	for _, verb := range t.info.Verbs {
		method := methods[verb]
		if verb == "create" && t.req.Subresource != "" {
			method = verbMethods[verb]
		}
		if method != "" && (verb == "list" || !t.ofAllNamespaces()) {
			all = append(all, method)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// methodNotAllowed returns the error for a method that the path does not have, and sets the
// header Allow.
func (c *call) methodNotAllowed() error {
	c.w.Header().Set("Allow", c.methods())
	if about := c.req.subject(); about.Resource.Resource != "" {
		return apierrors.NewMethodNotSupported(about.Resource, strings.ToLower(c.r.Method))
	}
	return status.New(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		fmt.Sprintf("%s is not supported on %s: send GET or HEAD", c.r.Method, c.req.Path), 0)
}
