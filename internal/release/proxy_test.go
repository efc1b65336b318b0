//go:build release

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// proxy is a module proxy that has the modules of a release, and no others of ours. The rest comes from the module
// cache of this machine, into which the go command downloads what is missing.
type proxy struct {
	t               *testing.T
	released, cache string
}

// newProxy starts a proxy with the modules of a commit, as the go command makes them from its tags, and returns its URL.
func newProxy(t *testing.T, clone, commit, version string) string {
	p := &proxy{t: t, released: t.TempDir(), cache: filepath.Join(output(t, nil, ".", "go", "env", "GOMODCACHE"), "cache", "download")}
	for _, folder := range published {
		m := module.Version{Path: path.Join(mainModule, folder), Version: version}
		var packed bytes.Buffer
		require.NoError(t, zip.CreateFromVCS(&packed, m, clone, commit, folder))
		require.Less(t, packed.Len(), 5<<20, "the zip of %s: each user downloads it", m)
		t.Logf("%s: a zip of %d kB", m, packed.Len()>>10)
		mod, err := os.ReadFile(filepath.Join(clone, folder, "go.mod"))
		require.NoError(t, err)
		at := filepath.Join(p.released, m.Path, "@v", version)
		write(t, at+".info", fmt.Sprintf(`{"Version":%q,"Time":"2026-01-01T00:00:00Z"}`, version))
		write(t, at+".mod", string(mod))
		write(t, at+".zip", packed.String())
		write(t, filepath.Join(filepath.Dir(at), "list"), version+"\n")
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return server.URL
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	of, file, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/@v/")
	if isOurs(of) || strings.HasPrefix(mainModule, of+"/") {
		http.ServeFile(w, r, filepath.Join(p.released, r.URL.Path))
		return
	}
	cached := filepath.Join(p.cache, r.URL.Path)
	if _, err := os.Stat(cached); err != nil {
		p.download(of, file)
	}
	http.ServeFile(w, r, cached)
}

// download has the go command put a file of a module into its cache. What it cannot get, the proxy does not have.
func (p *proxy) download(of, file string) {
	kind := path.Ext(file)
	of, errPath := module.UnescapePath(of)
	version, errVersion := module.UnescapeVersion(strings.TrimSuffix(file, kind))
	if errPath != nil || errVersion != nil {
		return
	}
	args := []string{"list", "-m"} // reads the .info and the .mod
	if kind == ".zip" {
		args = []string{"mod", "download"}
	}
	cmd := exec.CommandContext(p.t.Context(), "go", append(args, of+"@"+version)...)
	cmd.Dir = p.released // which is in no module
	out, err := cmd.CombinedOutput()
	p.t.Logf("download %s of %s: %v %s", file, of, err, out)
}
