package accept

import (
	"cmp"
	"mime"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clause is one alternative of an Accept header.
type clause struct {
	media   string
	params  map[string]string
	quality float64
}

// clauses returns the alternatives of an Accept header, the best first. It drops clauses
// that do not parse.
func clauses(header []string) []clause {
	var all []clause
	for text := range strings.SplitSeq(strings.Join(header, ","), ",") {
		media, params, err := mime.ParseMediaType(text)
		if err != nil {
			continue
		}
		c := clause{media, params, 1}
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
			c.quality = q
		}
		if c.quality > 0 {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b clause) int { return cmp.Compare(b.quality, a.quality) })
	return all
}

// acceptsJSON reports whether a clause asks for JSON, or leaves the form to the server.
func (c *clause) acceptsJSON() bool {
	return c.media == JSON || c.media == "application/*" || c.media == "*/*"
}

// objectShape returns the shape of objects that a clause asks for; ok is false if that is not served.
func (c *clause) objectShape() (s Shape, ok bool) {
	if !c.acceptsJSON() {
		return 0, false
	}
	as, group, version := c.params["as"], c.params["g"], c.params["v"]
	switch {
	case as == "":
		return Whole, true
	case as == "Table" && group == metav1.GroupName && version == "v1beta1":
		return BetaTable, true
	case group != metav1.GroupName || version != "v1":
		return 0, false
	case as == "Table":
		return Table, true
	case as == "PartialObjectMetadata", as == "PartialObjectMetadataList":
		return Partial, true
	}
	return 0, false
}

// watchShape is objectShape for a watch.
func (c *clause) watchShape() (s Shape, ok bool) {
	if c.media == EventStream {
		return Events, true
	}
	return c.objectShape()
}

// discoveryShape returns what a clause asks for in discovery; ok is false if that is not served.
func (c *clause) discoveryShape() (s Shape, ok bool) {
	if !c.acceptsJSON() {
		return 0, false
	}
	as, group, version := c.params["as"], c.params["g"], c.params["v"]
	if as == "" {
		return Whole, true
	}
	return aggregated, as == "APIGroupDiscoveryList" && group == "apidiscovery.k8s.io" && version == "v2"
}

// lean reports whether a clause asks for objects without their managed fields. The
// parameter may name other fields too, which are kept.
func (c *clause) lean() bool {
	return slices.Contains(strings.Split(c.params["drop"], "+"), "metadata.managedFields")
}
