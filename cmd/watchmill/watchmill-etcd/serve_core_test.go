package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/help"
	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
)

const (
	secretsPath    = "/api/v1/namespaces/shop/secrets"
	namespacesPath = "/api/v1/namespaces"
	inShop         = "/apis/example.com/v1/namespaces/shop/widgets"
	gearsPath      = "/apis/example.com/v1/namespaces/shop/gears"
)

// gears is a definition of another kind.
const gears = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gears.example.com"},"spec":{
	"group":"example.com","scope":"Namespaced","names":{"plural":"gears","kind":"Gear"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`

// eventually sends a request until it is answered with that code.
func eventually(t *testing.T, want int, method, url, body string) {
	t.Helper()
	until := time.Now().Add(patience)
	for {
		code, _ := send(t, method, url, body)
		if code == want {
			return
		}
		require.True(t, time.Now().Before(until), "%s %s is still answered with %d", method, url, code)
	}
}

// must sends a request that must be answered with that code, and returns the answer's metadata.
func must(t *testing.T, want int, method, url, body string) map[string]any {
	t.Helper()
	code, metadata := send(t, method, url, body)
	require.Equal(t, want, code, "%s %s", method, url)
	return metadata
}

// The kinds of Kubernetes are served beside those of manifests and of clients, in the same storage. A namespace that is
// deleted takes with it what it has of all of them, even after a restart.
func TestServe_CoreKindsBesideOthers(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	for _, data := range []string{"bolt:" + filepath.Join(t.TempDir(), "objects.db"), "etcd:" + etcdtest.Start(t, nil).Endpoint + "/shop"} {
		flags := server.Flags{CRD: []string{manifests}, AllowCRDs: true, CoreKinds: true, Data: data}
		url, stop := servingWith(t, flags)
		must(t, 201, "POST", url+namespacesPath, `{"metadata":{"name":"shop"}}`)
		must(t, 201, "POST", url+secretsPath, `{"metadata":{"name":"a"},"stringData":{"x":"y"}}`)
		must(t, 201, "POST", url+inShop, `{"metadata":{"name":"a"},"spec":{"size":3}}`)
		must(t, 201, "POST", url+"/api/v1/namespaces/shop/events", `{"metadata":{"name":"a"},"involvedObject":{"namespace":"shop"}}`) // which expires
		must(t, 200, "GET", url+"/apis/events.k8s.io/v1/namespaces/shop/events/a", "")
		must(t, 201, "POST", url+"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", gears)
		eventually(t, 201, "POST", url+gearsPath, `{"metadata":{"name":"a","finalizers":["example.com/x"]}}`)

		must(t, 200, "DELETE", url+namespacesPath+"/shop", "")
		for i, path := range []string{secretsPath, inShop, gearsPath} {
			eventually(t, 403, "POST", url+path, fmt.Sprintf(`{"metadata":{"generateName":"late%d-"},"spec":{"size":3}}`, i))
		}
		eventually(t, 404, "GET", url+inShop+"/a", "")
		eventually(t, 404, "GET", url+secretsPath+"/a", "")
		must(t, 200, "GET", url+namespacesPath+"/shop", "") // a gear is left
		stop()

		url, stop = servingWith(t, flags)
		kept := must(t, 200, "GET", url+gearsPath+"/a", "")
		must(t, 200, "PUT", url+gearsPath+"/a", fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Gear","metadata":{"name":"a","resourceVersion":%q}}`, kept["resourceVersion"]))
		eventually(t, 404, "GET", url+namespacesPath+"/shop", "")
		stop()
	}
}

// An event expires when --event-ttl says.
func TestServe_EventsLiveAsLongAsTheFlagSays(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	ttl := time.Second
	url, stop := servingWith(t, server.Flags{CoreKinds: true, EventTTL: &ttl, Data: "memory"})
	defer stop()
	events := url + "/api/v1/namespaces/default/events"
	must(t, 201, "POST", events, `{"metadata":{"name":"a"},"involvedObject":{"namespace":"default"}}`)
	eventually(t, 404, "GET", events+"/a", "")
}

// Of servers that share storage any deletes what a namespace has.
func TestServe_TwoServersDeleteANamespace(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	flags := server.Flags{CRD: []string{manifests}, CoreKinds: true, Data: "etcd:" + etcdtest.Start(t, nil).Endpoint + "/shop"}
	one, stopOne := servingWith(t, flags)
	two, stopTwo := servingWith(t, flags)
	must(t, 201, "POST", one+namespacesPath, `{"metadata":{"name":"shop"}}`)
	must(t, 201, "POST", two+secretsPath, `{"metadata":{"name":"a"}}`)
	must(t, 201, "POST", one+inShop, `{"metadata":{"name":"a"},"spec":{"size":3}}`)
	must(t, 200, "DELETE", two+namespacesPath+"/shop", "")
	for _, url := range []string{one, two} {
		eventually(t, 404, "GET", url+namespacesPath+"/shop", "")
		must(t, 404, "GET", url+secretsPath+"/a", "")
		must(t, 404, "GET", url+inShop+"/a", "")
	}
	stopOne()
	stopTwo()
}

// A file is served with the kinds and without them: what it has of them stays.
func TestServe_AFileWithAndWithoutCoreKinds(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	data := "bolt:" + filepath.Join(t.TempDir(), "objects.db")
	without := server.Flags{CRD: []string{manifests}, Data: data}
	url, stop := servingWith(t, without)
	must(t, 201, "POST", url+inShop, `{"metadata":{"name":"a"},"spec":{"size":3}}`)
	must(t, 404, "GET", url+namespacesPath, "")
	stop()

	url, stop = servingWith(t, server.Flags{CRD: []string{manifests}, CoreKinds: true, Data: data})
	made := must(t, 201, "POST", url+secretsPath, `{"metadata":{"name":"a"}}`) // there is no namespace shop
	must(t, 200, "GET", url+inShop+"/a", "")
	must(t, 200, "GET", url+namespacesPath+"/default", "")
	stop()

	_, stop = servingWith(t, without)
	stop()
	url, stop = servingWith(t, server.Flags{CoreKinds: true, Data: data})
	require.Equal(t, made, must(t, 200, "GET", url+secretsPath+"/a", ""))
	stop()
}

// A replica takes the kinds as their origin does, by what the program knows of them.
func TestServe_CoreKindsAtAReplica(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	origin, stopOrigin := servingWith(t, server.Flags{CoreKinds: true, Data: "memory"})
	defer stopOrigin()
	replica, stopReplica := servingWith(t, server.Flags{Upstream: help.Given(origin), Data: "memory"})
	defer stopReplica()
	must(t, 201, "POST", replica+secretsPath, `{"metadata":{"name":"a"},"stringData":{"x":"y"}}`)
	must(t, 200, "GET", replica+secretsPath+"?fieldSelector=type%3DOpaque", "")
	must(t, 400, "GET", replica+secretsPath+"?fieldSelector=kind%3DOpaque", "")

	must(t, 201, "POST", replica+namespacesPath, `{"metadata":{"name":"shop"},"spec":{"finalizers":["example.com/x"]}}`)
	must(t, 200, "DELETE", replica+namespacesPath+"/shop", "")
	must(t, 200, "PUT", replica+namespacesPath+"/shop/finalize", `{"metadata":{"name":"shop"}}`)
	must(t, 404, "GET", origin+namespacesPath+"/shop", "")
}
