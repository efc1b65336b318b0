package killtest_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/bolt"
	"github.com/watchmill/watchmill/store/backend/bolt/internal/killtest"
)

// written returns a file with a at revision 2, b at 3, and b deleted at 4.
func written(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "state.db")
	f, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	b, err := bolt.New(f, "items", bolt.Config{Schema: backendtest.Schema(), FirstRevision: 1})
	require.NoError(t, err)
	ctx := context.Background()
	for i, key := range []string{"a", "b"} {
		o, err := b.Put(ctx, backendtest.Draft(backendtest.Value{Key: key, Text: fmt.Sprint(i)}), nil, backend.PutOptions{})
		require.NoError(t, err)
		if key == "b" {
			_, err = b.Remove(ctx, o)
			require.NoError(t, err)
		}
	}
	return path
}

// A judge that never finds anything would let every file pass.
func TestJudge_FindsWhatIsWrong(t *testing.T) {
	for want, told := range map[string]string{
		"":                                   "put a 2 0\nput b 3 1\nput b 4 \nsaw a 2 0\nsaw b 3 1\n",
		"lost":                               "put a 2 0\nput c 5 2\n",
		"and was told to be":                 "put a 2 1\n",
		"the watch saw revision 3 after 1":   "saw b 3 1\n",
		"the watch saw revision 2 after 2":   "saw a 2 0\nsaw a 2 0\n",
		`is {"a" "0"} and {"a" "9"}`:         "put a 2 0\nsaw a 2 9\n",
		"the child failed: failed: for some": "failed: for some reason\n",
	} {
		j := killtest.NewJudge(written(t))
		err := j.Take(strings.NewReader(told + "put a 2"))
		if err == nil {
			err = j.Round()
		}
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, 3, j.Acknowledged)
			require.ErrorContains(t, j.Take(strings.NewReader("put a 2 0\n")), "used twice")
			continue
		}
		require.ErrorContains(t, err, want)
	}
	j := killtest.NewJudge(written(t))
	require.NoError(t, j.Round())
	require.Equal(t, 3, j.Unacknowledged)
}
