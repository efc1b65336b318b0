package apiextensions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve/apiextensions"
)

// withDefault gives the field color of the first version a default.
func withDefault(color string) func(map[string]any) {
	return ofVersion(func(v map[string]any) { fieldOf(v, "color")["default"] = color })
}

// fieldOf returns the schema of a field of the spec.
func fieldOf(version map[string]any, name string) map[string]any {
	schema := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	spec := schema["properties"].(map[string]any)["spec"].(map[string]any)
	return spec["properties"].(map[string]any)[name].(map[string]any)
}

// colorsIn returns the colors in an answer: of an object, of a list, or of the events of a watch.
func colorsIn(t *testing.T, a answer) (colors []any) {
	t.Helper()
	var find func(any)
	find = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			if spec, isSpec := v["spec"].(map[string]any); isSpec {
				colors = append(colors, spec["color"])
				return
			}
			for _, member := range v {
				find(member)
			}
		case []any:
			for _, item := range v {
				find(item)
			}
		}
	}
	for decoder := json.NewDecoder(bytes.NewReader(a.Body.Bytes())); decoder.More(); {
		var value any
		require.NoError(t, decoder.Decode(&value))
		find(value)
	}
	return colors
}

// A default that is added, or is another one, is seen by all reads at once, and is what a patch
// starts from. Nothing is stored for that.
func TestChange_OfADefaultIsSeenByReads(t *testing.T) {
	const merge = "application/merge-patch+json"
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		made := c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"},"spec":{"size":9}}`).object()
		for _, color := range []string{"grey", "red"} {
			c.update(200, definition("widgets", "Widget", withDefault(color)))
			for _, path := range []string{"/w", "/w?resourceVersion=0", "", "?resourceVersion=0", "?limit=1", "?watch=true&timeoutSeconds=1"} {
				require.Equal(t, []any{color}, colorsIn(t, c.must(200, "GET", widgetsPath+path, "")), path)
			}
			require.Equal(t, made.GetResourceVersion(), c.must(200, "GET", widgetsPath+"/w", "").object().GetResourceVersion())
			tested := `[{"op":"test","path":"/spec/color","value":"` + color + `"}]`
			c.must(200, "PATCH", widgetsPath+"/w?dryRun=All", tested, "Content-Type", "application/json-patch+json")
		}
		stored := c.must(200, "PATCH", widgetsPath+"/w", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", merge)
		require.Equal(t, []any{"red"}, colorsIn(t, stored))
		require.EqualValues(t, 1, stored.object().GetGeneration(), "the spec is as it was")
		c.update(200, definition("widgets", "Widget"))
		require.Equal(t, []any{"red"}, colorsIn(t, c.must(200, "GET", widgetsPath+"/w", "")), "it has been stored")
	})
}

// An object that was stored before a field had a default is stored with it by an update that
// changes nothing.
func TestChange_AnUpdateStoresDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"},"spec":{"size":9}}`)
		c.update(200, definition("widgets", "Widget", withDefault("grey")))
		rewrite := func() string {
			o := c.must(200, "GET", widgetsPath+"/w", "")
			return c.must(200, "PUT", widgetsPath+"/w", o.Body.String()).object().GetResourceVersion()
		}
		first := rewrite()
		require.Equal(t, first, rewrite(), "nothing is left to do")
		c.update(200, definition("widgets", "Widget", withDefault("red")))
		require.Equal(t, []any{"grey"}, colorsIn(t, c.must(200, "GET", widgetsPath+"/w", "")))
	})
}

// Whatever is written while the schema changes, all reads agree in the end, and have the default.
func TestChange_OfADefaultDuringWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, newLasting(t).config())
		c.define(definition("widgets", "Widget"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var writers sync.WaitGroup
		for n := range 4 {
			writers.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					name := fmt.Sprintf("w%d-%d", n, i%5)
					c.do("POST", widgetsPath, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"size":1}}`, name))
					c.do("PATCH", widgetsPath+"/"+name, fmt.Sprintf(`{"spec":{"size":%d}}`, i%9), "Content-Type", "application/merge-patch+json")
					if i%3 == 0 {
						c.do("DELETE", widgetsPath+"/"+name, "")
					}
					time.Sleep(5 * time.Millisecond) // of the bubble: the others go on
				}
			})
		}
		for _, color := range []string{"grey", "red", "blue"} {
			time.Sleep(50 * time.Millisecond) // of the bubble
			c.update(200, definition("widgets", "Widget", withDefault(color)))
		}
		time.Sleep(50 * time.Millisecond) // of the bubble
		cancel()
		writers.Wait()
		synctest.Wait()
		ofStorage := colorsIn(t, c.must(200, "GET", widgetsPath+"?limit=1000", ""))
		require.NotEmpty(t, ofStorage)
		require.NotContains(t, ofStorage, nil)
		require.Equal(t, ofStorage, colorsIn(t, c.must(200, "GET", widgetsPath+"?resourceVersion=0", "")))
		require.Equal(t, ofStorage, colorsIn(t, c.must(200, "GET", widgetsPath+"?watch=true&timeoutSeconds=1", "")))
	})
}

// The version in which objects are stored need not be served.
func TestVersions_TheStoredOneNeedNotBeServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unserved := func(spec map[string]any) {
			addVersion(spec)
			spec["versions"].([]any)[0].(map[string]any)["served"] = false
		}
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget", withDefault("grey"), unserved))
		const older = "/apis/example.com/v1beta1/namespaces/default/widgets"
		made := c.must(201, "POST", older, `{"metadata":{"name":"w"},"spec":{}}`)
		require.Equal(t, []any{"grey"}, colorsIn(t, made), "the default is that of the stored version")
		c.must(404, "GET", widgetsPath, "")
		require.Contains(t, c.must(200, "GET", "/apis/example.com", "").Body.String(), `"preferredVersion":{"groupVersion":"example.com/v1beta1"`)
		c.update(200, definition("widgets", "Widget", withDefault("grey"), addVersion))
		shown := c.must(200, "GET", widgetsPath+"/w", "").object()
		require.Equal(t, made.object().GetResourceVersion(), shown.GetResourceVersion())
		c.update(200, definition("widgets", "Widget", withDefault("grey"), unserved))
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await(widgetsName, "gone")
	})
}

// A definition of which no version is served keeps its names and its objects, as in a cluster.
func TestVersions_NoneNeedBeServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unserved := ofVersion(func(v map[string]any) { v["served"] = false })
		c := newCluster(t, apiextensions.Config{})
		c.define(definition("widgets", "Widget"))
		c.must(201, "POST", widgetsPath, `{"metadata":{"name":"w"}}`)
		c.update(200, definition("widgets", "Widget", unserved))
		require.Equal(t, []string{"NamesAccepted=True", "Established=True"}, conditions(c.get(widgetsName)))
		c.must(404, "GET", widgetsPath, "")
		c.must(404, "GET", "/apis/example.com", "")
		c.must(201, "POST", definitionsPath, definition("worlds", "Widget"))
		c.await("worlds.example.com", "NamesAccepted=False")
		c.update(200, definition("widgets", "Widget"))
		c.must(200, "GET", widgetsPath+"/w", "")
		c.update(200, definition("widgets", "Widget", unserved))
		c.must(200, "DELETE", definitionsPath+"/"+widgetsName, "")
		c.await(widgetsName, "gone")
		c.await("worlds.example.com", "Established=True")
	})
}
