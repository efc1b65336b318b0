package corekinds_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/corekinds"
)

// newReplica returns a replica of what a cluster serves, which knows its kinds by discovery alone.
func newReplica(t *testing.T, origin *cluster) *cluster {
	t.Helper()
	h := httptest.NewServer(origin.server)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	cfg := remote.Config{URL: h.URL, KeepManagedFields: true}
	found, err := remote.Kinds(t.Context(), cfg)
	require.NoError(t, err)
	all := serve.Config{Logger: slog.New(slog.DiscardHandler)}
	for _, f := range found {
		kind, known := corekinds.Replica(f.Kind)
		require.Equal(t, f.Kind.Kind != "Widget", known, f.Kind.Kind)
		kind.Schema, kind.Engine.FreshnessTimeout = f.Schema, time.Hour
		format, err := registry.FormatOf(kind)
		require.NoError(t, err)
		there, err := remote.New(format, cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, there.Close()) })
		kind.Engine.Backend = there
		s, err := registry.New(kind)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		all.Resources = append(all.Resources, s)
	}
	server, err := serve.New(all)
	require.NoError(t, err)
	return &cluster{t, nil, nil, server}
}

// A replica shows and takes the kinds as their origin does.
func TestReplica_IsAsItsOrigin(t *testing.T) {
	origin := newCluster(t, corekinds.Config{})
	replica := newReplica(t, origin)
	replica.record(t)
	replica.must(201, "POST", configMaps, message(t, "v1", "ConfigMap", &core.ConfigMap{ObjectMeta: named("default", "a"), Data: map[string]string{"x": "y"}}),
		"Content-Type", "application/vnd.kubernetes.protobuf")
	replica.must(200, "PATCH", configMaps+"/a", `{"data":{"z":"1"}}`, "Content-Type", strategic)
	replica.must(201, "POST", secrets, `{"metadata":{"name":"a"},"stringData":{"x":"y"}}`)
	replica.must(201, "PUT", coreEvents+"/put", `{"metadata":{"name":"put"},"involvedObject":{"namespace":"default"}}`)
	replica.must(201, "POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", `{"metadata":{"name":"a"},"spec":{"holderIdentity":"me"}}`)
	for _, path := range []string{
		configMaps, secrets, coreEvents, newEvents, namespaces, "/apis/coordination.k8s.io/v1/leases",
		coreEvents + "?fieldSelector=source%3Dlooker,involvedObject.name%3Da", newEvents + "?fieldSelector=regarding.name%3Da,type%3DWarning",
		secrets + "?fieldSelector=type%3DOpaque", namespaces + "?fieldSelector=status.phase%3DActive",
	} {
		names, cells := origin.rows(path)
		require.NotEmpty(t, cells, path)
		shown, there := replica.rows(path)
		require.Equal(t, names, shown, path)
		require.Len(t, there, len(cells), path)
		for i := range cells { // but for the ages, which are at the ends
			require.Equal(t, cells[i][1:len(cells[i])-1], there[i][1:len(there[i])-1], path)
		}
	}
	replica.must(400, "GET", newEvents+"?fieldSelector=involvedObject.name%3Da", "")
	replica.must(405, "DELETE", namespaces, "")
	replica.must(201, "POST", namespaces, `{"metadata":{"name":"shop"}}`)
	finalized := replica.must(200, "PUT", inShop+"/finalize?fieldManager=me", `{"metadata":{"name":"shop"},"spec":{"finalizers":["kubernetes","example.com/x"]}}`)
	require.Equal(t, []any{"kubernetes", "example.com/x"}, at(finalized, "spec.finalizers"))
	require.Equal(t, finalized, origin.must(200, "GET", inShop, ""))
	replica.must(405, "GET", inShop+"/finalize", "")
	require.Contains(t, replica.refused("POST", configMaps, `{"metadata":{"name":"b"},"data":{"a/b":""}}`), "data[a/b]: Invalid value")

	// Where an object has another form than here, its columns are empty.
	cfg, _ := corekinds.Replica(registry.Kind{Version: "v1", Kind: "ConfigMap"})
	s, err := registry.New(cfg)
	require.NoError(t, err)
	defer s.Close()
	it, err := s.Resources()[0].Create(context.Background(), "default", []byte(`{"metadata":{"name":"a"},"data":7}`), registry.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, []any{nil}, it.AppendCells(nil))
}
