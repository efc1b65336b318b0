package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	ginkgotypes "github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubernetes/test/e2e/framework"

	_ "k8s.io/kubernetes/test/e2e/apimachinery"
	_ "k8s.io/kubernetes/test/e2e/apps"
	_ "k8s.io/kubernetes/test/e2e/auth"
	_ "k8s.io/kubernetes/test/e2e/common"
	_ "k8s.io/kubernetes/test/e2e/feature"
	_ "k8s.io/kubernetes/test/e2e/instrumentation"
	_ "k8s.io/kubernetes/test/e2e/network"
	_ "k8s.io/kubernetes/test/e2e/scheduling"
	_ "k8s.io/kubernetes/test/e2e/storage"

	"github.com/watchmill/watchmill/registry/crd/cel"
	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/access"
	"github.com/watchmill/watchmill/serve/apiextensions"
	"github.com/watchmill/watchmill/serve/corekinds"
)

func TestConformance(t *testing.T) {
	definitions, err := apiextensions.New(t.Context(), apiextensions.Config{
		Decoders: protobuf.Decoders[extensions.CustomResourceDefinition]("CustomResourceDefinition"),
		Rules:    cel.Rules{},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, definitions.Close()) })
	reviews, err := access.New(access.Config{Authorize: authorize})
	require.NoError(t, err)
	kinds, err := corekinds.New(t.Context(), corekinds.Config{OnError: func(err error) { t.Log(err) }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, kinds.Close()) })
	handler, err := serve.New(serve.Config{
		Resources: append(stores(t), kinds, definitions, reviews), Authorize: authorize, Impersonation: true, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	require.NoError(t, err)
	require.NoError(t, definitions.Start(t.Context(), handler))
	require.NoError(t, kinds.Start(t.Context(), handler))
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	addNode(t, server.URL)
	configure(t, server.URL)

	outcomes := run(t)
	for _, name := range specs {
		t.Run(name, func(t *testing.T) {
			outcome, known := outcomes[name]
			require.True(t, known, "this version of Kubernetes has no such spec")
			require.Equal(t, ginkgotypes.SpecStatePassed, outcome.State, "%s\n%s", outcome.Failure.Message, outcome.Failure.Location)
		})
	}
}

// authorize allows everything but to service accounts, of which a spec demands that they may do what reviews
// say, whichever that is.
func authorize(_ context.Context, u serve.User, _ *serve.Request) error {
	if slices.Contains(u.Groups, "system:serviceaccounts") {
		return errors.New("service accounts may do nothing here")
	}
	return nil
}

// addNode adds a node that looks ready, for specs that demand one and do not use it.
func addNode(t *testing.T, url string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: url})
	require.NoError(t, err)
	nodes := client.CoreV1().Nodes()
	node, err := nodes.Create(t.Context(), &core.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	node.Status.Conditions = []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue}}
	_, err = nodes.UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// configure has the specs talk to the server at a URL.
func configure(t *testing.T, url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"watchmill": {Server: url}},
		Contexts:       map[string]*clientcmdapi.Context{"watchmill": {Cluster: "watchmill"}},
		CurrentContext: "watchmill",
	}, file))
	flags := flag.NewFlagSet("e2e", flag.ContinueOnError) // they have the defaults of what they set
	framework.RegisterCommonFlags(flags)
	framework.RegisterClusterFlags(flags)
	require.NoError(t, flags.Parse([]string{
		"-kubeconfig=" + file, "-host=" + url, "-kubectl-path=" + buildKubectl(t), "-provider=skeleton", "-e2e-verify-service-account=false", "-dump-logs-on-failure=false",
	}))
	framework.AfterReadingAllFlags(&framework.TestContext)
	gomega.RegisterFailHandler(framework.Fail)
}

// buildKubectl builds the kubectl of the tests of interop, and returns the program's path. By
// running cp of the program, the go command keeps it for the next time.
func buildKubectl(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubectl")
	cmd := exec.CommandContext(t.Context(), "go", "run", "-exec", fmt.Sprintf(`sh -c 'cp "$1" "$0"' %q`, path), ".")
	cmd.Dir = "../kubectl"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// run runs the specs, and returns the outcomes of all that Kubernetes has, by name.
func run(t *testing.T) map[string]ginkgotypes.SpecReport {
	t.Helper()
	patterns := make([]string, len(specs))
	for i, name := range specs {
		patterns[i] = regexp.QuoteMeta(name) + "$"
	}
	suite, reporter := framework.CreateGinkgoConfig()
	suite.FocusStrings, suite.Timeout = patterns, 8*time.Minute
	reporter.JSONReport, reporter.NoColor, reporter.SilenceSkips = filepath.Join(t.TempDir(), "report.json"), true, true
	ginkgo.RunSpecs(t, "Kubernetes", suite, reporter)

	text, err := os.ReadFile(reporter.JSONReport)
	require.NoError(t, err)
	var reports []ginkgotypes.Report
	require.NoError(t, json.Unmarshal(text, &reports))
	outcomes := map[string]ginkgotypes.SpecReport{}
	for _, report := range reports {
		for _, spec := range report.SpecReports {
			outcomes[strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " ")] = spec
		}
	}
	return outcomes
}
