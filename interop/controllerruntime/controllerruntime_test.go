package controllerruntime

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	// The module has what their tests import.
	_ "sigs.k8s.io/controller-runtime/pkg/builder"
	_ "sigs.k8s.io/controller-runtime/pkg/client"
	_ "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/apiextensions"
)

// packages are those whose tests run, below controller-runtime's pkg.
var packages = []string{"builder", "client", "source"}

// skipped are parts of the names of the tests that do not run, and why.
var skipped = map[string]string{
	"does not pass server-side validation": "the rules of pods are Kubernetes' own",
	"refuse a create request":              "so are those of deployments",
	"refuse an update request":             "and here, too",
	"propagate a typed error":              "the type of a secret is fixed by Kubernetes' own rules",
	"DryRunClient should not create":       "it creates with a resourceVersion, which a dry run refuses here as the creation does",
	"approve CSRs":                         "subresources that are updated are status and scale",
}

func TestControllerRuntime_PassesItsOwnTests(t *testing.T) {
	var patterns []string
	for pattern := range skipped {
		patterns = append(patterns, pattern)
	}
	var all []spec
	ran := 0
	for _, name := range packages {
		t.Run(name, func(t *testing.T) {
			report := filepath.Join(t.TempDir(), "report.json")
			cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-timeout=5m", "sigs.k8s.io/controller-runtime/pkg/"+name)
			cmd.Args = append(cmd.Args, "-ginkgo.no-color", "-ginkgo.skip="+strings.Join(patterns, "|"), "-ginkgo.json-report="+report)
			cmd.Env = append(os.Environ(), "USE_EXISTING_CLUSTER=true", "KUBECONFIG="+served(t))
			cmd.Env = append(cmd.Env, "GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT=1m") // where they wait for a second
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			all = append(all, readReport(t, report)...)
			ran++
		})
	}
	if ran < len(packages) {
		return // since they failed, or -run selects some
	}
	passed := 0
	for _, s := range all {
		if s.State == "passed" {
			passed++
		}
	}
	t.Logf("%d specs passed", passed)
	require.Greater(t, passed, 300)
	for pattern := range skipped {
		require.True(t, slices.ContainsFunc(all, func(s spec) bool {
			return s.State == "skipped" && strings.Contains(s.name(), pattern)
		}), "no spec is skipped by the pattern %q", pattern)
	}
}

// spec is a test of theirs, with what has become of it.
type spec struct {
	ContainerHierarchyTexts           []string
	LeafNodeType, LeafNodeText, State string
}

func (s spec) name() string {
	return strings.Join(append(slices.Clone(s.ContainerHierarchyTexts), s.LeafNodeText), " ")
}

// readReport reads the specs of a report of ginkgo's.
func readReport(t *testing.T, file string) (specs []spec) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var suites []struct{ SpecReports []spec }
	require.NoError(t, json.Unmarshal(text, &suites))
	for _, suite := range suites {
		specs = append(specs, suite.SpecReports...)
	}
	return slices.DeleteFunc(specs, func(s spec) bool { return s.LeafNodeType != "It" })
}

// served serves the kinds that the tests use, and those that they define, and returns the name of a
// kubeconfig.
func served(t *testing.T) string {
	t.Helper()
	definitions, err := apiextensions.New(t.Context(), apiextensions.Config{
		Decoders: protobuf.Decoders[extensions.CustomResourceDefinition]("CustomResourceDefinition"),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, definitions.Close()) })
	handler, err := serve.New(serve.Config{
		Resources: append(kinds(t), definitions), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	require.NoError(t, err)
	require.NoError(t, definitions.Start(t.Context(), handler))
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: "default"}}, meta.CreateOptions{})
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"watchmill": {Server: server.URL}},
		Contexts:       map[string]*clientcmdapi.Context{"watchmill": {Cluster: "watchmill"}},
		CurrentContext: "watchmill",
	}, name))
	return name
}
