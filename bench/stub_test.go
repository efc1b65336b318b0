package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An object that seems created anew is a deletion and an addition to an informer, which
// would do twice the work of client-go's for each update.
func TestStub_AnUpdateKeepsWhenTheObjectWasCreated(t *testing.T) {
	f := newFeed(configWithoutFields())
	created, err := f.Write(t.Context(), Object{Name: "a"})
	require.NoError(t, err)
	updated, err := f.Write(t.Context(), Object{Name: "a", Seq: 1})
	require.NoError(t, err)

	o := f.stub.objects[Object{Name: "a"}.Key()]
	require.EqualValues(t, created, o.Created)
	require.EqualValues(t, updated, o.Revision)
}
