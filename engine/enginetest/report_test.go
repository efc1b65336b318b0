package enginetest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/engine/enginetest"
)

// counted is a value that counts how often it is compared.
type counted struct {
	Name     string
	compared *int
}

func (c counted) Equal(other counted) bool {
	*c.compared++
	return c.Name == other.Name
}

// A test with many events fails about as soon as one with few, however they differ.
func TestExpectExactly_ReportsManyEventsWithoutComparingEachWithEach(t *testing.T) {
	const n = 3000
	for name, test := range map[string]struct {
		want func(i int) string // in place of the ith event
		diff []string
	}{
		"one differs": {
			want: func(i int) string { return map[bool]string{true: "other", false: fmt.Sprintf("%04d", i)}[i == n/2] },
			diff: []string{"- ADDED {Name:other", "+ ADDED 1500@1502 {Name:1500"},
		},
		"all differ": {
			want: func(i int) string { return fmt.Sprintf("other-%04d", i) },
			diff: []string{"- ADDED {Name:other-0000", "+ ADDED 0000@2 {Name:0000", "+ ADDED 2999@"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			compared := 0
			failures := failuresOf(t, func(t *recorder) {
				e := enginetest.NewWith(t, engine.Config[counted]{Key: func(c counted) string { return c.Name }},
					enginetest.Options{AllowMutations: true})
				w := e.Watch(engine.WatchOptions{})
				wants := make([]enginetest.Want, n)
				for i := range n {
					e.Create(counted{fmt.Sprintf("%04d", i), &compared})
					wants[i] = enginetest.Added(counted{test.want(i), &compared})
				}
				compared = 0
				enginetest.ExpectExactly(t, w, wants...)
			})
			require.Less(t, compared, 10*n)
			report := strings.Join(failures, "\n")
			for _, line := range test.diff {
				require.Contains(t, report, line)
			}
		})
	}
}
