package catalog_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/catalog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const version = "v1.2.3"

// resource returns the description of a resource; subresource may be "".
func resource(group, version, kind, subresource string) *registry.Info {
	return &registry.Info{
		Kind:        registry.Kind{Group: group, Version: version, Kind: kind, Plural: strings.ToLower(kind) + "s", Singular: strings.ToLower(kind)},
		Subresource: subresource, Verbs: []string{"get", "list"},
		Schema: json.RawMessage(`{"type":"object","properties":{"spec":{"type":"object"}}}`),
	}
}

// resources are of two groups and three versions, with a subresource of another kind.
func resources() []*registry.Info {
	scale := resource("example.com", "v1", "Widget", "scale")
	scale.Object = registry.Kind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
	return []*registry.Info{
		resource("example.com", "v1", "Widget", ""), resource("example.com", "v1", "Widget", "status"), scale,
		resource("example.com", "v1beta1", "Widget", ""), resource("example.com", "v1", "Zone", ""), resource("other.org", "v2", "Gear", ""),
	}
}

// The documents do not depend on the order of the resources, so that a client that has them
// need not fetch them again when the server restarts.
func TestCatalog_IsTheSameInAnyOrderOfResources(t *testing.T) {
	want := catalog.New(resources(), version)
	require.Contains(t, want.ByPath, "/openapi/v3/apis/example.com/v1beta1")
	v2 := func(c *catalog.Catalog) string { return c.V2JSON().ETag + c.V2Protobuf().ETag }
	for seed := range uint64(20) {
		shuffled := resources()
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		c := catalog.New(shuffled, version)
		require.Equal(t, want.ByPath, c.ByPath, "seed %d", seed)
		require.Equal(t, want.Aggregated, c.Aggregated, "seed %d", seed)
		require.Equal(t, v2(want), v2(c), "seed %d", seed)
	}
}

func TestCatalog_PutsTheNewestStableVersionFirst(t *testing.T) {
	var group struct {
		PreferredVersion struct{ GroupVersion string }
		Versions         []struct{ Version string }
	}
	require.NoError(t, json.Unmarshal(catalog.New(resources(), version).ByPath["/apis/example.com"].Body, &group))
	require.Equal(t, "example.com/v1", group.PreferredVersion.GroupVersion)
	require.Equal(t, "v1beta1", group.Versions[1].Version)
}

func TestCatalog_LeavesOutASubresourceWithoutItsKind(t *testing.T) {
	c := catalog.New([]*registry.Info{resource("example.com", "v1", "Gear", ""), resource("example.com", "v1", "Widget", "status")}, version)
	require.NotContains(t, string(c.ByPath["/apis/example.com/v1"].Body), "widgets")
	require.NotContains(t, string(c.ByPath["/openapi/v3/apis/example.com/v1"].Body), "widgets")
}

// The hashes are those that Kubernetes has for its own kinds.
func TestDiscovery_TellsTheStorageVersionByItsHash(t *testing.T) {
	hash := func(path string, resources ...*registry.Info) (hashes []any) {
		var list struct{ Resources []map[string]any }
		require.NoError(t, json.Unmarshal(catalog.New(resources, version).ByPath[path].Body, &list))
		for _, r := range list.Resources {
			hashes = append(hashes, r["storageVersionHash"])
		}
		return hashes
	}
	stored := func(info *registry.Info, in string) *registry.Info {
		info.StorageVersion = in
		return info
	}
	require.Equal(t, []any{"xPOwRZ+Yhw8="}, hash("/api/v1", stored(resource("", "v1", "Pod", ""), "v1")))
	deployments, status := stored(resource("apps", "v1", "Deployment", ""), "v1"), stored(resource("apps", "v1", "Deployment", "status"), "v1")
	require.Equal(t, []any{"8aSe+NMegvE=", nil}, hash("/apis/apps/v1", deployments, status), "a subresource is not stored")
	require.Equal(t, []any{"8aSe+NMegvE="}, hash("/apis/apps/v1beta1", stored(resource("apps", "v1beta1", "Deployment", ""), "v1")), "other versions are stored in that one")
	require.Equal(t, []any{nil}, hash("/apis/apps/v1", resource("apps", "v1", "Deployment", "")), "another server stores them")
}

// Clients follow the references of OpenAPI, so each must lead somewhere.
func TestOpenAPI_EveryReferenceIsDescribed(t *testing.T) {
	for path, document := range catalog.New(resources(), version).ByPath {
		if !strings.HasPrefix(path, "/openapi/v3/apis/") {
			continue
		}
		var doc struct {
			Info       struct{ Version string }
			Components struct{ Schemas map[string]any }
		}
		require.NoError(t, json.Unmarshal(document.Body, &doc))
		require.Equal(t, version, doc.Info.Version)
		refs := 0
		for part := range strings.SplitSeq(string(document.Body), `"#/components/schemas/`) {
			name, _, _ := strings.Cut(part, `"`)
			if refs++; refs > 1 { // the first part is what comes before
				require.Contains(t, doc.Components.Schemas, name, path)
			}
		}
		require.Greater(t, refs, 1, path)
	}
}

func TestOpenAPI_DescribesTheCommonFieldsThatASchemaDoesNot(t *testing.T) {
	own := resource("example.com", "v1", "Widget", "")
	own.Schema = json.RawMessage(`{"type":"object","properties":{"kind":{"type":"string","description":"Ours."}}}`)
	odd := resource("example.com", "v1", "Zone", "")
	odd.Schema = json.RawMessage(`true`)
	var doc struct {
		Components struct {
			Schemas map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(catalog.New([]*registry.Info{own, odd}, version).ByPath["/openapi/v3/apis/example.com/v1"].Body, &doc))
	properties := doc.Components.Schemas["com.example.v1.Widget"].(map[string]any)["properties"].(map[string]any)
	require.Equal(t, "Ours.", properties["kind"].(map[string]any)["description"])
	require.Contains(t, properties["metadata"].(map[string]any)["properties"], "labels")
	require.Equal(t, true, doc.Components.Schemas["com.example.v1.Zone"], "a schema that is not an object is shown as it was given")
}

// A kind of which nothing is stored has neither lists nor paths of single objects.
func TestOpenAPI_DescribesTheVerbsThatThereAre(t *testing.T) {
	question := resource("example.com", "v1", "Question", "")
	question.Verbs, question.Kind.ClusterScoped = []string{"create"}, true
	c := catalog.New([]*registry.Info{question}, version)
	for _, body := range [][]byte{c.ByPath["/openapi/v3/apis/example.com/v1"].Body, c.V2JSON().Body} {
		var doc struct {
			Paths map[string]map[string]any
		}
		require.NoError(t, json.Unmarshal(body, &doc))
		require.Len(t, doc.Paths, 1)
		require.Len(t, doc.Paths["/apis/example.com/v1/questions"], 1)
		require.Contains(t, doc.Paths["/apis/example.com/v1/questions"], "post")
		require.NotContains(t, string(body), "QuestionList")
	}
}
