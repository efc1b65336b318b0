package states_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/sim/load/internal/content"
	"github.com/watchmill/watchmill/sim/load/internal/states"
	"github.com/watchmill/watchmill/sim/trace"
)

func file(key, version string, rev engine.Revision) states.Item {
	return &engine.Object[content.Item]{Key: key, Value: content.Item{Key: key, Version: version, IsFile: true}, Revision: rev}
}

// truth is what the others are compared with.
var truth = states.Of([]states.Item{file("a", "1", 2), file("b", "1", 3)})

func TestDifference_NamesTheFirstObjectThatDiffers(t *testing.T) {
	for want, got := range map[string][]states.Item{
		"":                                     {file("b", "1", 3), file("a", "1", 2)},
		`"a" is not there and 1 at revision 2`: {file("b", "1", 3)},
		`"a" is 2 at revision 2 and 1 at revision 2`: {file("a", "2", 2), file("b", "2", 3)},
		`"b" is 2 at revision 3 and 1 at revision 3`: {file("a", "1", 2), file("b", "2", 3)},
		`"b" is 1 at revision 4 and 1 at revision 3`: {file("a", "1", 2), file("b", "1", 4)},
		`"c" is 1 at revision 4 and not there`:       {file("a", "1", 2), file("b", "1", 3), file("c", "1", 4)},
	} {
		require.Equal(t, want, states.Difference(states.Of(got), truth))
	}
}

func TestTraceDifference_NamesTheFirstFileThatDiffers(t *testing.T) {
	for want, written := range map[string]trace.State{
		"":                                       {"a": "1", "b": "1"},
		`"a" is 1 at revision 2 and should be 2`: {"a": "2", "b": "1"},
		`"b" is 1 at revision 3 and should not be`: {"a": "1"},
		`"c" is not there and should be 1`:         {"a": "1", "b": "1", "c": "1"},
	} {
		require.Equal(t, want, states.TraceDifference(truth, written))
	}
}
