package serve_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// Each patch, and each apply of another manager, may add as much as a body has. Without a bound the object would
// in the end need more memory than there is each time that it is read or written.
func TestAbuse_ObjectsDoNotGrowWithoutBound(t *testing.T) {
	const body = 64 << 10
	addition := func(n int) string { return fmt.Sprintf(`{"a%d":%q}`, n, strings.Repeat("x", body-1<<10)) }
	for name, add := range map[string]func(s *server, n int) answer{
		"merge patch": func(s *server, n int) answer {
			return s.do("PATCH", inDefault+"/a", `{"metadata":{"annotations":`+addition(n)+`}}`, "Content-Type", mergePatch)
		},
		"JSON patch": func(s *server, n int) answer {
			return s.do("PATCH", inDefault+"/a", fmt.Sprintf(`[{"op":"add","path":"/metadata/annotations/a%d","value":%q}]`, n, strings.Repeat("x", body-1<<10)), "Content-Type", jsonPatch)
		},
		"apply": func(s *server, n int) answer {
			return s.do("PATCH", inDefault+fmt.Sprint("/a?fieldManager=m", n), `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","annotations":`+addition(n)+`}}`, "Content-Type", applyPatch)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, withApply, func(_ *registry.Config[Widget], c *serve.Config) { c.Limits.BodyBytes = body })
			require.Equal(t, 201, s.do("POST", inDefault, `{"metadata":{"name":"a","annotations":{"a":""}}}`).code)
			for n := range 2 {
				require.Equal(t, 200, add(s, n).code)
			}
			full := add(s, 2)
			for n := 3; full.code == 200 && n < 5; n++ {
				full = add(s, n)
			}
			require.Equal(t, "413 RequestEntityTooLarge", fmt.Sprintf("%d %s", full.code, full.str("reason")), "%.300s", full.body)
			require.Less(t, len(s.get(inDefault+"/a").body), 2*body+64<<10)
			removed := s.do("PATCH", inDefault+"/a", `{"metadata":{"annotations":{"a0":null}}}`, "Content-Type", mergePatch)
			require.Equal(t, 200, removed.code, "it can shrink")
		})
	}
}

// A message of protobuf may have a million parts of two bytes, each of which has all of its fields in JSON.
func TestAbuse_BodiesAreNotFarLargerAsJSON(t *testing.T) {
	s := newServer(t, func(w *registry.Config[Widget], c *serve.Config) {
		c.Limits.BodyBytes = 1 << 10
		w.Decoders = map[string]func([]byte) ([]byte, error){"application/blanks": func(body []byte) ([]byte, error) {
			n, err := strconv.Atoi(string(body))
			return fmt.Appendf(nil, `{"metadata":{"name":"a%d"},"spec":{"size":1}}%s`, n, strings.Repeat(" ", n)), err
		}}
	})
	post := func(blanks int) answer {
		return s.do("POST", inDefault, strconv.Itoa(blanks), "Content-Type", "application/blanks")
	}
	require.Equal(t, 201, post(60<<10).code)
	a := post(70 << 10)
	require.Equal(t, "413 RequestEntityTooLarge", fmt.Sprintf("%d %s", a.code, a.str("reason")), a.body)
}
