package engine_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	module     = "github.com/watchmill/watchmill"
	protoactor = "github.com/asynkron/protoactor-go/"
)

// imports is what each package imports.
type imports map[string][]string

// importsOf returns the imports of a package and of all that it needs.
func importsOf(t *testing.T, pkg string) imports {
	t.Helper()
	listing := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports", pkg)
	out, err := listing.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, listing.Start())
	graph := imports{}
	for decoder := json.NewDecoder(out); ; {
		var one struct {
			ImportPath string
			Imports    []string
		}
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		graph[one.ImportPath] = one.Imports
	}
	require.NoError(t, listing.Wait())
	return graph
}

// path returns the way from one package to the first that is found, "" if there
// is none. It does not look behind those that end does.
func (g imports) path(from string, found, end func(pkg string) bool) string {
	seen, queue := map[string]bool{from: true}, []string{from}
	ways := map[string]string{from: from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if found(at) {
			return ways[at]
		}
		if end(at) {
			continue
		}
		for _, next := range g[at] {
			if !seen[next] {
				seen[next], ways[next] = true, ways[at]+" imports "+next
				queue = append(queue, next)
			}
		}
	}
	return ""
}

func under(prefixes ...string) func(string) bool {
	return func(pkg string) bool {
		for _, prefix := range prefixes {
			if pkg == strings.TrimSuffix(prefix, "/") || strings.HasPrefix(pkg, prefix) {
				return true
			}
		}
		return false
	}
}

func never(string) bool { return false }

// What only some users need is not in the binaries of all.
func TestImports_EngineNeedsNoneOfWhatOnlySomeNeed(t *testing.T) {
	const engine = module + "/engine"
	graph := importsOf(t, engine)
	require.NotEmpty(t, graph.path(engine, under(protoactor), never), "the graph must have what is there")
	for _, unwanted := range []string{
		"go.etcd.io/", "google.golang.org/grpc", "k8s.io/api/", "k8s.io/client-go/", "k8s.io/apiserver/",
		"k8s.io/apimachinery/pkg/apis/", "k8s.io/apimachinery/pkg/runtime", "sigs.k8s.io/",
		"gonum.org/", "git.sr.ht/", "github.com/cockroachdb/", "testing",
		module + "/sim", module + "/cmd/", module + "/serve", module + "/registry", module + "/remote", module + "/inspect",
		engine + "/informer", engine + "/objectcache", engine + "/enginetest", module + "/store/backend/bolt", module + "/store/codec", module + "/queue",
	} {
		require.Empty(t, graph.path(engine, under(unwanted), never))
	}
	// The actor library itself imports net/http and a metrics client. Nothing
	// else does.
	beside := []string{"net/http", "go.opentelemetry.io/", "github.com/prometheus/", "google.golang.org/protobuf/"}
	require.Empty(t, graph.path(engine, under(beside...), under(protoactor)))
}

func TestImports_PathIsFound(t *testing.T) {
	graph := imports{"a": {"b", "c"}, "b": {"d"}, "c": {"b"}}
	require.Equal(t, "a imports b imports d", graph.path("a", under("d"), never))
	require.Empty(t, graph.path("a", under("d"), under("b", "c")))
	require.Empty(t, graph.path("a", under("e"), never))
	require.True(t, under("x/")("x"))
	require.True(t, under("x/")("x/y"))
	require.False(t, under("x/")("xy"))
}
