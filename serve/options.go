package serve

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
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

// listOptions are the parameters of a list or a watch.
type listOptions struct {
	version  string // resourceVersion as given
	revision engine.Revision
	match    string
	limit    int
	next     string // the continue token as given
	initial  *bool  // sendInitialEvents
	bookmark bool
	progress bool // progressNotify
	timeout  time.Duration

	// what to select
	key, prefix   string
	labels        labels.Selector
	fields        fields.Selector
	labelsAsGiven string
	fieldsAsGiven string
}

// listOptions reads the parameters of a list or a watch, or of the deletion of a collection.
func (c *call) listOptions() (*listOptions, error) {
	q := c.req.query
	o := &listOptions{
		version: q.Get("resourceVersion"), match: q.Get("resourceVersionMatch"), next: q.Get("continue"),
		bookmark: isTrue(q, "allowWatchBookmarks"), progress: isTrue(q, "progressNotify"), labelsAsGiven: c.req.Labels, fieldsAsGiven: c.req.Fields,
	}
	if q.Has("sendInitialEvents") {
		initial := isTrue(q, "sendInitialEvents")
		o.initial = &initial
	}
	if err := o.parseNumbers(c); err != nil {
		return nil, err
	}
	if wrong := o.contradictions(c.req.Verb == "watch"); len(wrong) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", wrong)
	}
	return o, o.parseSelectors(c)
}

// parseNumbers reads the parameters that are numbers.
func (o *listOptions) parseNumbers(c *call) error {
	q := c.req.query
	var err error
	if o.revision, err = parseRevision(o.version); err != nil {
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
		o.timeout = time.Duration(seconds) * time.Second
	}
	return nil
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

// contradictions returns what is wrong with the parameters together.
func (o *listOptions) contradictions(watch bool) (wrong field.ErrorList) {
	match, supported := field.NewPath("resourceVersionMatch"), []string{matchExact, matchNotOlderThan}
	forbid := func(path *field.Path, detail string) { wrong = append(wrong, field.Forbidden(path, detail)) }
	switch {
	case !watch && o.initial != nil:
		forbid(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for list")
	case watch && o.initial != nil && o.match != matchNotOlderThan:
		forbid(match, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
	}
	if o.match == "" {
		return wrong
	}
	switch {
	case watch:
		supported = supported[1:]
		if o.initial == nil {
			forbid(match, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
		}
	case o.version == "":
		forbid(match, "resourceVersionMatch is forbidden unless resourceVersion is provided")
	case o.match == matchExact && o.version == "0":
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
func (o *listOptions) parseSelectors(c *call) error {
	if len(o.labelsAsGiven) > maxSelectorBytes || len(o.fieldsAsGiven) > maxSelectorBytes {
		return status.BadRequest("a selector is longer than %d bytes: shorten it", maxSelectorBytes)
	}
	var err error
	if o.labels, err = labels.Parse(o.labelsAsGiven); err != nil {
		return status.BadRequest("labelSelector does not parse: %v", err)
	}
	if o.fields, err = fields.ParseSelector(o.fieldsAsGiven); err != nil {
		return status.BadRequest("fieldSelector does not parse: %v", err)
	}
	requirements, _ := o.labels.Requirements()
	if len(requirements)+len(o.fields.Requirements()) > maxRequirements {
		return status.BadRequest("the selectors have more than %d requirements: send fewer", maxRequirements)
	}
	o.narrow(c)
	return nil
}

// narrow fixes the key, or the prefix of keys, that the path and the field
// selector leave.
func (o *listOptions) narrow(c *call) {
	namespace := c.req.Namespace
	if fixed, ok := o.fields.RequiresExactMatch("metadata.namespace"); ok && namespace == "" {
		namespace = fixed
	}
	name, named := o.fields.RequiresExactMatch("metadata.name")
	switch {
	case c.info.Kind.ClusterScoped && named && name != "":
		o.key = name
	case c.info.Kind.ClusterScoped || namespace == "":
	case named && name != "":
		o.key = c.info.Kind.Key(namespace, name)
	default:
		o.prefix = namespace + "/"
	}
}

// read returns how fresh a list must be.
func (o *listOptions) read() engine.Read {
	switch {
	case o.version == "":
		return engine.Latest()
	case o.version == "0":
		return engine.Cached()
	case o.match == matchExact:
		return engine.Exactly(o.revision)
	}
	return engine.NotOlderThan(o.revision)
}

// forList returns the options of the list that the engine is asked for.
func (o *listOptions) forList(c *call) (engine.ListOptions, error) {
	opts := engine.ListOptions{
		Key: o.key, Prefix: o.prefix, LabelSelector: o.labels, FieldSelector: o.fields, Limit: o.limit, Read: o.read(),
	}
	if o.next == "" {
		return opts, nil
	}
	if o.version != "" && o.version != "0" {
		return opts, status.BadRequest("resourceVersion cannot be given together with continue, which holds it already")
	}
	var err error
	opts.Read = engine.Latest()
	opts.Continue, err = openToken(o.next, o.fingerprint(c))
	return opts, err
}

// fingerprint differs between lists, so that a token of one list is not used for another.
func (o *listOptions) fingerprint(c *call) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00%s\x00%s", c.req.Group, c.req.Version, c.req.Resource, c.req.Namespace, o.labels, o.fields)
	return h.Sum64()
}

// token is what a continue token holds.
type token struct {
	Continue string `json:"c"`
	List     string `json:"l"`
}

// sealToken makes the engine's token one of this list. "" stays "".
func sealToken(next string, fingerprint uint64) string {
	if next == "" {
		return ""
	}
	text, err := json.Marshal(token{next, strconv.FormatUint(fingerprint, 36)})
	if err != nil {
		return "" // cannot happen: it is two strings
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// openToken returns the engine's token.
func openToken(sealed string, fingerprint uint64) (string, error) {
	refused := func(why string) (string, error) {
		return "", status.BadRequest("the continue token %s: list again without one", why)
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(sealed, "="))
	if err != nil {
		return refused("is not valid")
	}
	var t token
	if err := json.Unmarshal(text, &t); err != nil || t.Continue == "" {
		return refused("is not valid")
	}
	if t.List != strconv.FormatUint(fingerprint, 36) {
		return refused("is of another list")
	}
	return t.Continue, nil
}

// checkDryRun reports whether the values of dryRun ask for a dry run.
func (c *call) checkDryRun(values []string) (bool, error) {
	for _, value := range values {
		if value != metav1.DryRunAll {
			return false, c.invalidOption(field.NotSupported(field.NewPath("dryRun"), value, []string{metav1.DryRunAll}))
		}
	}
	return len(values) > 0, nil
}

// invalidOption is the answer to a write option that is wrong.
func (c *call) invalidOption(wrong *field.Error) error {
	kinds := map[string]string{"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
	kind := schema.GroupKind{Group: metav1.GroupName, Kind: cmp.Or(kinds[c.req.Verb], "DeleteOptions")}
	return apierrors.NewInvalid(kind, "", field.ErrorList{wrong})
}
