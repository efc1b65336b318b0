package params

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/status"
)

// Request is a request whose parameters are read. The errors of its methods are Statuses.
type Request struct {
	Verb                     string
	Group, Version, Resource string
	Namespace                string
	Labels, Fields           string // the selectors as given
	Query                    url.Values
	Kind                     *registry.Kind
}

// Get reads how fresh the object must be that a get answers with.
func (r Request) Get() (engine.Read, error) {
	o := List{Version: r.Query.Get("resourceVersion")}
	var err error
	o.Revision, err = parseRevision(o.Version)
	return o.read(), err
}

// IsTrue reports whether a parameter is present and neither false nor 0.
func IsTrue(query url.Values, name string) bool {
	value := query.Get(name)
	return query.Has(name) && value != "0" && !strings.EqualFold(value, "false")
}

// parseRevision returns the revision that a resourceVersion names: zero for "" and for 0.
func parseRevision(version string) (engine.Revision, error) {
	if version == "" || version == "0" {
		return 0, nil
	}
	rev, err := strconv.ParseUint(version, 10, 64)
	if err != nil || version[0] == '0' {
		return 0, status.BadRequest("resourceVersion is %q: give one that the server has returned, or 0", version)
	}
	return engine.Revision(rev), nil
}

// dryRun reports whether the values of dryRun ask for a dry run.
func (r Request) dryRun(values []string) (bool, error) {
	for _, value := range values {
		if value != metav1.DryRunAll {
			return false, r.invalid(field.NotSupported(field.NewPath("dryRun"), value, []string{metav1.DryRunAll}))
		}
	}
	return len(values) > 0, nil
}

// invalid is the answer to write options that are wrong.
func (r Request) invalid(wrong ...*field.Error) error {
	kinds := map[string]string{"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
	kind := schema.GroupKind{Group: metav1.GroupName, Kind: cmp.Or(kinds[r.Verb], "DeleteOptions")}
	return apierrors.NewInvalid(kind, "", wrong)
}
