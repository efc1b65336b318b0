package serve_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What only clients and larger servers need is not in the binaries of all.
func TestImports_ServerNeedsNoClientsAndNoSchemes(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	packages := strings.Fields(string(out))
	require.Contains(t, packages, "k8s.io/apimachinery/pkg/apis/meta/v1", "the list must have what is there")
	for _, pkg := range packages {
		for _, unwanted := range []string{
			"k8s.io/api/", "k8s.io/client-go/", "k8s.io/apiserver/", "k8s.io/apimachinery/pkg/util/managedfields", "k8s.io/apimachinery/pkg/util/strategicpatch", "sigs.k8s.io/structured-merge-diff/v6/merge", "sigs.k8s.io/structured-merge-diff/v6/typed", "sigs.k8s.io/yaml/", "k8s.io/kube-openapi/pkg/validation",
			"github.com/gorilla/", "github.com/coder/websocket", "github.com/watchmill/watchmill/sim", "github.com/watchmill/watchmill/serve/prommetrics", "github.com/watchmill/watchmill/store/backend/bolt",
		} {
			require.False(t, strings.HasPrefix(pkg+"/", unwanted), pkg)
		}
	}
}
