package lease_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/lease"
	"github.com/watchmill/watchmill/store/backend/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"

// message returns an object as clients send it in protobuf.
func message(t testing.TB, apiVersion, kind string, object interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := object.Marshal()
	require.NoError(t, err)
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	text, err := u.Marshal()
	require.NoError(t, err)
	return append([]byte("k8s\x00"), text...)
}

func held(by string) *coordination.Lease {
	seconds := int32(15)
	return &coordination.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "controller", Namespace: "kube-system"},
		Spec:       coordination.LeaseSpec{HolderIdentity: &by, LeaseDurationSeconds: &seconds},
	}
}

func newServer(t *testing.T) (url string) {
	t.Helper()
	leases, err := lease.New(engine.Config[lease.Lease]{FreshnessTimeout: time.Hour}) // however long a machine stands still
	require.NoError(t, err)
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{leases}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	h := httptest.NewServer(handler)
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		h.Close()
		require.NoError(t, leases.Close())
	})
	return h.URL
}

func send(t *testing.T, method, url, media string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", media)
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf,application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// A program that gives storage for its leases finds them there after a restart: without them, two would lead.
func TestNew_KeepsLeasesInTheStorageOfItsConfig(t *testing.T) {
	storage, err := memory.New(registry.Schema(lease.Config()), memory.Options{})
	require.NoError(t, err)
	leases, err := lease.New(engine.Config[lease.Lease]{Backend: storage, FreshnessTimeout: time.Hour})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, leases.Close()) })
	created, err := leases.Create(t.Context(), *held("a"), registry.WriteOptions{})
	require.NoError(t, err)
	kept, err := storage.Get(t.Context(), created.Key)
	require.NoError(t, err)
	require.Equal(t, created.Revision, kept.Revision)
}

// Typed clients send protobuf, and get JSON.
func TestLease_IsWrittenInProtobuf(t *testing.T) {
	url := newServer(t) + path
	code, text := send(t, "POST", url, runtime.ContentTypeProtobuf, message(t, "coordination.k8s.io/v1", "Lease", held("a")))
	require.Equal(t, 201, code, text)
	require.Contains(t, text, `"holderIdentity":"a"`)
	next := held("b")
	next.ResourceVersion = version(t, text)
	code, text = send(t, "PUT", url+"/controller", runtime.ContentTypeProtobuf, message(t, "coordination.k8s.io/v1", "Lease", next))
	require.Equal(t, 200, code, text)
	require.Contains(t, text, `"holderIdentity":"b"`)
	wrong := "another"
	code, text = send(t, "DELETE", url+"/controller", runtime.ContentTypeProtobuf, message(t, "v1", "DeleteOptions", &metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{ResourceVersion: &wrong},
	}))
	require.Equal(t, 409, code, text)
	code, text = send(t, "DELETE", url+"/controller", runtime.ContentTypeProtobuf, message(t, "v1", "DeleteOptions", &metav1.DeleteOptions{}))
	require.Equal(t, 200, code, text)
}

// version returns the resourceVersion in an answer.
func version(t *testing.T, text string) string {
	t.Helper()
	var object metav1.PartialObjectMetadata
	require.NoError(t, json.Unmarshal([]byte(text), &object), text)
	require.NotEmpty(t, object.ResourceVersion)
	return object.ResourceVersion
}

// An update has to say which state it replaces, so that no candidate takes a lease that another
// has taken meanwhile. One that creates replaces none, and a patch is of the newest.
func TestLease_UpdatesNeedARevision(t *testing.T) {
	url := newServer(t) + path + "/controller"
	put := func(holder, version string) (int, string) {
		l := held(holder)
		l.ResourceVersion = version
		return send(t, "PUT", url, runtime.ContentTypeProtobuf, message(t, "coordination.k8s.io/v1", "Lease", l))
	}
	code, text := put("a", "")
	require.Equal(t, 201, code, text)
	first := version(t, text)
	for _, none := range []string{"", "0"} {
		code, text = put("b", none)
		require.Equal(t, 422, code, text)
		require.Contains(t, text, "metadata.resourceVersion: Invalid value: 0")
		require.Contains(t, text, "must be specified for an update")
	}
	code, text = put("b", first)
	require.Equal(t, 200, code, text)
	code, text = put("c", first)
	require.Equal(t, 409, code, text)
	code, text = send(t, "PATCH", url, "application/merge-patch+json", []byte(`{"spec":{"holderIdentity":"c"}}`))
	require.Equal(t, 200, code, text)
	require.Contains(t, text, `"holderIdentity":"c"`)
}

// A lease with a strategy waits for a coordinator to choose its holder, and there is none here.
func TestLease_WaitsForNoCoordinator(t *testing.T) {
	url := newServer(t) + path
	l, strategy, other := held("a"), coordination.OldestEmulationVersion, "b"
	l.Spec.Strategy, l.Spec.PreferredHolder = &strategy, &other
	code, text := send(t, "POST", url, runtime.ContentTypeProtobuf, message(t, "coordination.k8s.io/v1", "Lease", l))
	require.Equal(t, 201, code, text)
	require.NotContains(t, text, "strategy")
	require.NotContains(t, text, "preferredHolder")
	code, text = send(t, "PATCH", url+"/controller", "application/merge-patch+json", []byte(`{"spec":{"strategy":"OldestEmulationVersion"}}`))
	require.Equal(t, 200, code, text)
	require.NotContains(t, text, "strategy")
}

// kubectl get shows who holds a lease. A leader that has ended may leave one without a holder.
func TestLease_TableNamesTheHolder(t *testing.T) {
	url := newServer(t) + path
	free := held("a")
	free.Name, free.Spec.HolderIdentity = "free", nil
	for _, l := range []*coordination.Lease{held("a"), free} {
		code, text := send(t, "POST", url, runtime.ContentTypeProtobuf, message(t, "coordination.k8s.io/v1", "Lease", l))
		require.Equal(t, 201, code, text)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	require.NoError(t, err)
	req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	var table metav1.Table
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&table))
	require.Equal(t, "Holder", table.ColumnDefinitions[1].Name)
	var holders []any
	for _, row := range table.Rows {
		holders = append(holders, row.Cells[1])
	}
	require.Equal(t, []any{"a", ""}, holders)
}

func TestLease_NumbersThatMeanNothingAreRefused(t *testing.T) {
	url := newServer(t) + path
	zero, negative := int32(0), int32(-1)
	l := held("a")
	l.Spec.LeaseDurationSeconds, l.Spec.LeaseTransitions = &zero, &negative
	code, text := send(t, "POST", url, runtime.ContentTypeProtobuf, message(t, "coordination.k8s.io/v1", "Lease", l))
	require.Equal(t, 422, code, text)
	require.Contains(t, text, "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0")
	require.Contains(t, text, "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0")
	l = held("a")
	l.Spec.LeaseTransitions = &zero
	code, text = send(t, "POST", url, runtime.ContentTypeProtobuf, message(t, "coordination.k8s.io/v1", "Lease", l))
	require.Equal(t, 201, code, text)
	code, text = send(t, "PATCH", url+"/controller", "application/merge-patch+json", []byte(`{"spec":{"leaseDurationSeconds":-5}}`))
	require.Equal(t, 422, code, text)
	code, text = send(t, "PATCH", url+"/controller", "application/merge-patch+json", []byte(`{"spec":{"leaseDurationSeconds":null}}`))
	require.Equal(t, 200, code, text)
}

func TestLease_WhatIsNoMessageIsRefused(t *testing.T) {
	url := newServer(t) + path
	whole := message(t, "coordination.k8s.io/v1", "Lease", held("a"))
	for name, body := range map[string][]byte{
		"JSON": []byte(`{}`), "cut": whole[:len(whole)/2], "another kind": message(t, "v1", "Pod", held("a")),
	} {
		code, text := send(t, "POST", url, runtime.ContentTypeProtobuf, body)
		require.Equal(t, 400, code, "%s: %s", name, text)
	}
	code, text := send(t, "POST", url, "application/cbor", whole)
	require.Equal(t, 415, code)
	require.Contains(t, text, runtime.ContentTypeProtobuf, "it says what is accepted")
}

// kubectl edit and kubectl apply send strategic merge patches to kinds of Kubernetes.
func TestLease_TakesStrategicMergePatches(t *testing.T) {
	url := newServer(t) + path
	code, text := send(t, "POST", url, runtime.ContentTypeProtobuf, message(t, "coordination.k8s.io/v1", "Lease", held("a")))
	require.Equal(t, 201, code, text)
	code, text = send(t, "PATCH", url+"/controller", "application/strategic-merge-patch+json", []byte(`{"spec":{"holderIdentity":"b"}}`))
	require.Equal(t, 200, code, text)
	require.Contains(t, text, `"holderIdentity":"b","leaseDurationSeconds":15`)
}

// A server with leases beside kinds of your own lets controllers elect a leader.
func ExampleNew() {
	leases, err := lease.New(engine.Config[lease.Lease]{})
	if err != nil {
		panic(err)
	}
	defer leases.Close()
	if _, err := serve.New(serve.Config{Resources: []serve.Provider{leases}}); err != nil { // and others
		panic(err)
	}
	fmt.Println(leases.Resources()[0].Info().Kind.GroupResource())
	// Output: leases.coordination.k8s.io
}
