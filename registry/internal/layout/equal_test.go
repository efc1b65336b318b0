package layout_test

import (
	"net/netip"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/watchmill/watchmill/registry/internal/layout"
)

// opaque has unexported fields and no method Equal.
type opaque struct {
	Text   string
	hidden []int
}

// base is embedded: its own name is not exported, its field is.
type base struct{ Depth int }

// shapes has fields of each way to be compared.
type shapes struct {
	base
	At      time.Time
	Ends    []*time.Time
	By      map[string]netip.Addr
	Link    *url.URL
	Whole   opaque
	Amount  resource.Quantity
	List    []string
	Another *shapes
}

func TestEquality_ComparesStructsWithUnexportedFields(t *testing.T) {
	same := layout.Equality(reflect.TypeFor[shapes]())
	at := time.Unix(1_000_000_000, 0)
	made := func(change func(*shapes)) shapes {
		end := at
		s := shapes{
			base: base{1}, At: at, Ends: []*time.Time{&end}, By: map[string]netip.Addr{"a": netip.MustParseAddr("10.0.0.1")},
			Link: &url.URL{Path: "/a"}, Whole: opaque{"a", []int{1}}, Amount: resource.MustParse("1"), Another: &shapes{},
		}
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		change func(*shapes)
		equal  bool
	}{
		"nothing":               {func(*shapes) {}, true},
		"the zone of a time":    {func(s *shapes) { s.At = s.At.UTC() }, true},
		"the unit of an amount": {func(s *shapes) { s.Amount = resource.MustParse("1000m") }, true},
		"an empty list":         {func(s *shapes) { s.List = []string{} }, true},
		"a time":                {func(s *shapes) { s.At = s.At.Add(1) }, false},
		"a time in a list":      {func(s *shapes) { *s.Ends[0] = at.Add(1) }, false},
		"an address":            {func(s *shapes) { s.By["a"] = netip.MustParseAddr("10.0.0.2") }, false},
		"a link":                {func(s *shapes) { s.Link = &url.URL{Path: "/b"} }, false},
		"an unexported field":   {func(s *shapes) { s.Whole.hidden = []int{2} }, false},
		"an embedded field":     {func(s *shapes) { s.Depth = 2 }, false},
		"a value of its type":   {func(s *shapes) { s.Another.At = at }, false},
	} {
		a, b := made(func(*shapes) {}), made(tc.change)
		require.Equal(t, tc.equal, same.DeepEqual(a, b), name)
	}
}
