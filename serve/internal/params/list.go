package params

import (
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/serve/internal/status"
)

// Bounds of selectors.
const (
	maxSelectorBytes = 16 << 10
	maxRequirements  = 100
)

// Values of resourceVersionMatch.
const (
	matchExact        = "Exact"
	matchNotOlderThan = "NotOlderThan"
)

// List are the parameters of a list, a watch, or the deletion of a collection.
type List struct {
	Version   string          // resourceVersion as given
	Revision  engine.Revision // that of Version: zero for "" and for 0
	Initial   *bool           // sendInitialEvents
	Bookmarks bool            // allowWatchBookmarks
	Progress  bool            // progressNotify
	Timeout   time.Duration

	// What to select.
	Key, Prefix string
	Labels      labels.Selector
	Fields      fields.Selector

	of    Request
	match string
	limit int
	next  string // the continue token as given
}

// List reads the parameters of a list, a watch, or the deletion of a collection.
func (r Request) List() (*List, error) {
	q := r.Query
	o := &List{
		Version: q.Get("resourceVersion"), Bookmarks: IsTrue(q, "allowWatchBookmarks"), Progress: IsTrue(q, "progressNotify"),
		of: r, match: q.Get("resourceVersionMatch"), next: q.Get("continue"),
	}
	if q.Has("sendInitialEvents") {
		initial := IsTrue(q, "sendInitialEvents")
		o.Initial = &initial
	}
	if r.Verb == "watch" {
		o.beginWithState()
	}
	if err := o.parseNumbers(); err != nil {
		return nil, err
	}
	if wrong := o.contradictions(r.Verb == "watch"); len(wrong) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", wrong)
	}
	return o, o.parseSelectors()
}

// beginWithState has a watch of no revision, which begins with the state, ask for that as sendInitialEvents does, unless it
// has a parameter of that. As in Kubernetes, a bookmark then tells clients that want bookmarks where the state ends.
func (o *List) beginWithState() {
	if o.Initial == nil && o.match == "" && (o.Version == "" || o.Version == "0") {
		o.Initial, o.match = new(true), matchNotOlderThan
	}
}

// parseNumbers reads the parameters that are numbers.
func (o *List) parseNumbers() error {
	q := o.of.Query
	var err error
	if o.Revision, err = parseRevision(o.Version); err != nil {
		return err
	}
	if text := q.Get("limit"); text != "" {
		if o.limit, err = strconv.Atoi(text); err != nil || o.limit < 0 {
			return status.BadRequest("limit is %q: give a number of objects", text)
		}
	}
	if text := q.Get("timeoutSeconds"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil || seconds < 0 {
			return status.BadRequest("timeoutSeconds is %q: give a number of seconds", text)
		}
		o.Timeout = time.Duration(seconds) * time.Second
	}
	return nil
}

// contradictions returns what is wrong with the parameters together.
func (o *List) contradictions(watch bool) (wrong field.ErrorList) {
	match, supported := field.NewPath("resourceVersionMatch"), []string{matchExact, matchNotOlderThan}
	forbid := func(path *field.Path, detail string) { wrong = append(wrong, field.Forbidden(path, detail)) }
	switch {
	case !watch && o.Initial != nil:
		forbid(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for list")
	case watch && o.Initial != nil && o.match != matchNotOlderThan:
		forbid(match, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
	}
	if o.match == "" {
		return wrong
	}
	switch {
	case watch:
		supported = supported[1:]
		if o.Initial == nil {
			forbid(match, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
		}
	case o.Version == "":
		forbid(match, "resourceVersionMatch is forbidden unless resourceVersion is provided")
	case o.match == matchExact && o.Version == "0":
		forbid(match, `resourceVersionMatch "Exact" is forbidden for resourceVersion "0"`)
	}
	if o.next != "" {
		forbid(match, "resourceVersionMatch is forbidden when continue is provided")
	}
	if !slices.Contains(supported, o.match) {
		wrong = append(wrong, field.NotSupported(match, o.match, supported))
	}
	return wrong
}

// parseSelectors reads the selectors, and narrows the keys by what they fix.
func (o *List) parseSelectors() error {
	if len(o.of.Labels) > maxSelectorBytes || len(o.of.Fields) > maxSelectorBytes {
		return status.BadRequest("a selector is longer than %d bytes: shorten it", maxSelectorBytes)
	}
	var err error
	if o.Labels, err = labels.Parse(o.of.Labels); err != nil {
		return status.BadRequest("labelSelector does not parse: %v", err)
	}
	if o.Fields, err = fields.ParseSelector(o.of.Fields); err != nil {
		return status.BadRequest("fieldSelector does not parse: %v", err)
	}
	requirements, _ := o.Labels.Requirements()
	if len(requirements)+len(o.Fields.Requirements()) > maxRequirements {
		return status.BadRequest("the selectors have more than %d requirements: send fewer", maxRequirements)
	}
	o.narrow()
	return nil
}

// narrow fixes the key, or the prefix of keys, that the path and the field
// selector leave.
func (o *List) narrow() {
	namespace := o.of.Namespace
	if fixed, ok := o.Fields.RequiresExactMatch("metadata.namespace"); ok && namespace == "" {
		namespace = fixed
	}
	name, named := o.Fields.RequiresExactMatch("metadata.name")
	switch {
	case o.of.Kind.ClusterScoped && named && name != "":
		o.Key = name
	case o.of.Kind.ClusterScoped || namespace == "":
	case named && name != "":
		o.Key = o.of.Kind.Key(namespace, name)
	default:
		o.Prefix = namespace + "/"
	}
}

// read returns how fresh the list must be.
func (o *List) read() engine.Read {
	switch {
	case o.Version == "":
		return engine.Latest()
	case o.Version == "0":
		return engine.Cached()
	case o.match == matchExact:
		return engine.Exactly(o.Revision)
	}
	return engine.NotOlderThan(o.Revision)
}

// Options returns the options of the list that the engine is asked for.
func (o *List) Options() (engine.ListOptions, error) {
	opts := engine.ListOptions{
		Key: o.Key, Prefix: o.Prefix, LabelSelector: o.Labels, FieldSelector: o.Fields, Limit: o.limit, Read: o.read(),
	}
	if o.next == "" {
		return opts, nil
	}
	if o.Version != "" && o.Version != "0" {
		return opts, status.BadRequest("resourceVersion cannot be given together with continue, which holds it already")
	}
	var err error
	opts.Read = engine.Latest()
	opts.Continue, err = o.unseal(o.next)
	return opts, err
}
