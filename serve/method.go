package serve

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/serve/internal/status"
)

// verbMethods are the methods of the verbs, of a whole resource and of one object.
var (
	verbMethods    = map[string]string{"list": "GET, HEAD", "create": "POST", "deletecollection": "DELETE"}
	verbMethodsOne = map[string]string{"get": "GET, HEAD", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
)

// methodNotAllowed returns the error for a method that the path does not have, and sets the
// header Allow.
func methodNotAllowed(c *call) error {
	c.w.Header().Set("Allow", c.allowedMethods())
	if about := c.subject(); about.Resource.Resource != "" {
		return apierrors.NewMethodNotSupported(about.Resource, strings.ToLower(c.r.Method))
	}
	return status.New(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		fmt.Sprintf("%s is not supported on %s: send GET or HEAD", c.r.Method, c.req.Path), 0)
}

// allowedMethods lists the methods of the request's path. Paths other than the resources' are read only.
func (c *call) allowedMethods() string {
	if c.resource == nil {
		return "GET, HEAD"
	}
	methods := verbMethods
	if c.req.Name != "" && !c.req.selects() {
		methods = verbMethodsOne
	}
	var all []string
	for _, verb := range c.info.Verbs {
		method := methods[verb]
		if verb == "create" && c.req.Subresource != "" {
			method = verbMethods[verb]
		}
		if method != "" && (verb == "list" || !c.ofAllNamespaces()) {
			all = append(all, method)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
