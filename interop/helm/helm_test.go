package helm

import (
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/apiextensions"
	"github.com/watchmill/watchmill/serve/corekinds"
)

// asHelm is set in the environment of the processes in which a test runs Helm.
const asHelm = "WATCHMILL_TEST_AS_HELM"

func TestMain(m *testing.M) {
	if os.Getenv(asHelm) != "" {
		os.Exit(runHelm())
	}
	goleak.VerifyTestMain(m)
}

// runHelm is the main function of Helm.
func runHelm() int {
	kube.ManagedFieldsManager = "helm"
	root, err := cmd.NewRootCmd(os.Stdout, os.Args[1:], cmd.SetupLogging)
	if err != nil {
		return 1
	}
	if root.Execute() != nil {
		return 1
	}
	return 0
}

// cluster is a server for Helm.
type cluster struct {
	t           *testing.T
	url, home   string
	kinds       *corekinds.Kinds
	definitions *apiextensions.Definitions
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	kinds, err := corekinds.New(t.Context(), corekinds.Config{OnError: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, kinds.Close()) })
	definitions, err := apiextensions.New(t.Context(), apiextensions.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, definitions.Close()) })
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{kinds, definitions}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	require.NoError(t, err)
	require.NoError(t, definitions.Start(t.Context(), handler))
	require.NoError(t, kinds.Start(t.Context(), handler))
	h := httptest.NewServer(handler)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return &cluster{t, h.URL, t.TempDir(), kinds, definitions}
}

// helm runs Helm, and returns what it prints.
func (c *cluster) helm(args ...string) string {
	c.t.Helper()
	self, err := os.Executable()
	require.NoError(c.t, err)
	helm := exec.CommandContext(c.t.Context(), self, args...)
	helm.Env = append(os.Environ(), asHelm+"=yes", "HOME="+c.home, "KUBECONFIG="+filepath.Join(c.home, "none"), "HELM_KUBEAPISERVER="+c.url, "HELM_NAMESPACE=web")
	out, err := helm.CombinedOutput()
	require.NoError(c.t, err, "helm %s: %s", strings.Join(args, " "), out)
	return string(out)
}

// color returns the color that the release has installed.
func (c *cluster) color() string {
	c.t.Helper()
	m, err := c.kinds.ConfigMaps().Engine().Get(c.t.Context(), "web/web", engine.GetOptions{})
	require.NoError(c.t, err)
	s, err := c.kinds.Secrets().Engine().Get(c.t.Context(), "web/web", engine.GetOptions{})
	require.NoError(c.t, err)
	require.Equal(c.t, m.Value.Data["color"], string(s.Value.Data["color"]))
	return m.Value.Data["color"]
}

// releases returns how many releases are stored.
func (c *cluster) releases() int {
	c.t.Helper()
	list, err := c.kinds.Secrets().Engine().List(c.t.Context(), engine.ListOptions{Fields: "type=helm.sh/release.v1", Labels: "owner=helm,name=web"})
	require.NoError(c.t, err)
	return len(list.Items)
}

// A chart with a definition, an object of it, a ConfigMap and a Secret goes through the life of a release.
func TestHelm_ThroughTheLifeOfARelease(t *testing.T) {
	c := newCluster(t)
	const chart = "testdata/shop"
	require.Contains(t, c.helm("install", "web", chart, "--create-namespace", "--wait"), "STATUS: deployed")
	require.Equal(t, "red", c.color())
	namespace, err := c.kinds.Namespaces().Engine().Get(t.Context(), "web", engine.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "web", namespace.Value.Labels["name"], "Helm gives it a label")

	require.Contains(t, c.helm("upgrade", "web", chart, "--set", "color=blue"), "REVISION: 2")
	require.Equal(t, "blue", c.color())
	require.Equal(t, 2, c.releases())
	require.Contains(t, c.helm("get", "manifest", "web"), "color: blue")
	require.Contains(t, c.helm("history", "web"), "superseded")
	require.Contains(t, c.helm("rollback", "web", "1", "--wait"), "Rollback was a success")
	require.Equal(t, "red", c.color())
	require.Regexp(t, `web\s+web\s+3\s`, c.helm("list", "--all-namespaces"))

	require.Contains(t, c.helm("uninstall", "web", "--wait"), `release "web" uninstalled`)
	require.Zero(t, c.releases())
	_, err = c.kinds.ConfigMaps().Engine().Get(t.Context(), "web/web", engine.GetOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
	_, err = c.definitions.Store().Engine().Get(t.Context(), "lamps.example.com", engine.GetOptions{})
	require.NoError(t, err, "Helm leaves definitions")
}
