package scenario_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/scenario"
)

// The fields of a mapping override those that are merged into it, wherever the merge key is
// written; a field that is overridden is as good as not written.
func TestParse_FieldsOverrideMergedOnes(t *testing.T) {
	s, err := scenario.Parse("f.yaml", []byte(`
objects: {fields: &f {node: 3, zone: 4}, labels: {zone: 5, <<: *f}}
watchers:
  - &w {name: w, count: 3, consume: {rate: 100}}
  - &v {<<: *w, name: v, consume: {pause: 1s, every: 2s}}
  - {count: 7, name: u, <<: *v}
`))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"node": 3, "zone": 5}, s.Objects.Labels)
	pausing := scenario.Consume{Pause: time.Second, Every: 2 * time.Second}
	require.Equal(t, "v", s.Watchers[1].Name)
	require.Equal(t, pausing, s.Watchers[1].Consume)
	require.Equal(t, "u", s.Watchers[2].Name)
	require.Equal(t, pausing, s.Watchers[2].Consume)
	require.Equal(t, []int{3, 3, 7}, []int{s.Watchers[0].Count, s.Watchers[1].Count, s.Watchers[2].Count})
}

func TestParse_RefusesAFieldThatIsWrittenTwice(t *testing.T) {
	for _, text := range []string{
		"watchers: [{name: u, name: v}]",
		"watchers: [&a {name: u}, {<<: *a, <<: *a}]",
		"watchers: [&a {name: u}, {<<: *a, name: v, name: w}]",
	} {
		_, err := scenario.Parse("f.yaml", []byte(text))
		require.ErrorContains(t, err, "already defined")
	}
}
