package remote_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	kjson "sigs.k8s.io/json"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// unending is a body that begins with text, and ends when its request is given up.
func unending(r *http.Request, text string) io.Reader {
	return io.MultiReader(strings.NewReader(text), later{r.Context(), time.Hour})
}

// An object is decoded when it has arrived, so that one that cannot be read ends a list that would go on.
func TestList_DecodesObjectsAsTheyArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pretend(t, func(r *http.Request) (*http.Response, error) {
			return reply(http.StatusOK, unending(r, `{"metadata":{"resourceVersion":"7"},"items":[`+object("a", 5)+`,{"spec":5},`))
		})
		began := time.Now()
		_, err := b.List(t.Context(), backend.ListOptions{})
		require.ErrorContains(t, err, "the server's object cannot be read")
		require.Zero(t, time.Since(began), "of virtual time")
	})
}

// The rest of a list whose changes the server has given up is of no use.
func TestList_OfAPastStateThatExpiresIsNotReadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pretend(t, func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Has("watch") {
				return reply(http.StatusGone, strings.NewReader(""))
			}
			return reply(http.StatusOK, unending(r, `{"metadata":{"resourceVersion":"7"},"items":[`))
		})
		began := time.Now()
		_, err := b.List(t.Context(), backend.ListOptions{State: true, Revision: 1})
		require.ErrorIs(t, err, store.ErrExpired)
		require.Zero(t, time.Since(began), "of virtual time")
		require.Zero(t, remote.Watches(b))
	})
}

// A list whose text is much larger than its objects takes the memory of the objects.
func TestList_KeepsNoText(t *testing.T) {
	const objects, dropped = 50, 128 << 10
	field := `{"unknown":"` + strings.Repeat("x", dropped) + `",`
	b := pretend(t, func(*http.Request) (*http.Response, error) {
		parts := []io.Reader{strings.NewReader(`{"metadata":{"resourceVersion":"7"},"items":[` + object("first", 5))}
		for i := range objects {
			parts = append(parts, strings.NewReader(","), strings.NewReader(field), strings.NewReader(object(fmt.Sprint("o", i), 5)[1:]))
		}
		return reply(http.StatusOK, io.MultiReader(append(parts, strings.NewReader("]}"))...))
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	list, err := b.List(t.Context(), backend.ListOptions{})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Len(t, list.Items, 1+objects)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(objects*dropped/4), "bytes allocated")
}

// Blanks between values, of which a broken server may send any number, cost little. Those in texts stay.
func TestList_OfBlanks(t *testing.T) {
	const many = 1 << 20
	item := strings.Replace(object("a", 5), `"u-a"`, `"u  -\\\" \\"`, 1)
	b := pretend(t, func(*http.Request) (*http.Response, error) {
		begin, end := strings.NewReader(`{"metadata":{"resourceVersion":"7"},"items":[`), strings.NewReader("\t\n\r "+item+"]}")
		return reply(http.StatusOK, crumbs{io.MultiReader(begin, io.LimitReader(spaces{}, many), end), 1 << 10})
	})
	list, err := b.List(t.Context(), backend.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	format, err := registry.FormatOf(widgets(new(atomic.Int64)))
	require.NoError(t, err)
	require.EqualValues(t, `u  -\" \`, format.Meta(list.Items[0]).GetUID())
}

// referenceList returns the keys of a list, and its revision, as they are read from the whole text.
func referenceList(format *registry.Format, text []byte) (keys []string, rev string, err error) {
	var list struct {
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &list); err != nil {
		return nil, "", err
	}
	for _, item := range list.Items {
		o, err := format.Decode(item)
		if err != nil {
			return nil, "", err
		}
		keys = append(keys, o.Key)
	}
	_, err = strconv.ParseUint(list.Metadata.ResourceVersion, 10, 64)
	return keys, list.Metadata.ResourceVersion, err
}

// listText draws the text of a list: fields in any order, and perhaps a mistake.
func listText(t *rapid.T) []byte {
	items := make([]string, rapid.IntRange(0, 4).Draw(t, "objects"))
	for i := range items {
		items[i] = object(fmt.Sprint("o", i), i+1)
	}
	list := rapid.SampledFrom([]string{"null", "[]", " [ " + strings.Join(items, " , ") + "\n] "}).Draw(t, "items")
	fields := rapid.Permutation([]string{
		`"kind":"WidgetList"`, `"metadata": {"resourceVersion":"7", "continue":""}`, `"items":` + list,
		`"\"items\"": "  [ ", "other":{"items":[1,{"metadata":{"resourceVersion":"9"}}],"metadata":null}`, `"Items":5`,
	}).Draw(t, "fields")
	text := "{" + strings.Join(fields[:rapid.IntRange(2, len(fields)).Draw(t, "number of fields")], ",\n") + "}\n"
	at := rapid.IntRange(0, len(text)-1).Draw(t, "place")
	switch rapid.SampledFrom([]string{"", "", "cut", "drop", "insert", "twice"}).Draw(t, "mistake") {
	case "cut":
		text = text[:at]
	case "drop":
		text = text[:at] + text[at+1:]
	case "insert":
		text = text[:at] + rapid.SampledFrom([]string{",", "]", "}", "[", "1", `"`, "null", " "}).Draw(t, "inserted") + text[at:]
	case "twice":
		text += text
	}
	return []byte(text)
}

// crumbs is a body of which each Read returns a few bytes.
type crumbs struct {
	from io.Reader
	most int
}

func (c crumbs) Read(p []byte) (int, error) { return c.from.Read(p[:min(len(p), 1+rand.N(c.most))]) }

// However a list arrives, and whatever is wrong with it, it is what its whole text is.
func TestList_IsThatOfItsWholeText(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := listText(rt)
		most := rapid.IntRange(1, 600).Draw(rt, "bytes at once")
		b := pretend(t, func(*http.Request) (*http.Response, error) {
			return reply(http.StatusOK, crumbs{strings.NewReader(string(text)), most})
		})
		format, err := registry.FormatOf(widgets(new(atomic.Int64)))
		require.NoError(rt, err)
		want, rev, wrong := referenceList(format, text)
		list, err := b.List(rt.Context(), backend.ListOptions{Limit: len(text)}) // of one page, whatever it says
		require.Equal(rt, wrong != nil, err != nil, "%q: %v, %v", text, wrong, err)
		if err != nil {
			return
		}
		require.Equal(rt, rev, list.Revision.String())
		require.Equal(rt, len(want), len(list.Items))
		for i, o := range list.Items {
			require.Equal(rt, want[i], o.Key)
		}
	})
}
