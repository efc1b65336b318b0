package corekinds_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/corekinds"
)

// A server has Kubernetes' own kinds beside those of the program.
func ExampleNew() {
	ctx := context.Background()
	kinds, err := corekinds.New(ctx, corekinds.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer kinds.Close()
	server, err := serve.New(serve.Config{Resources: []serve.Provider{kinds}})
	if err != nil {
		log.Fatal(err)
	}
	if err := kinds.Start(ctx, server); err != nil {
		log.Fatal(err)
	}
	request := httptest.NewRequest("POST", "http://127.0.0.1/api/v1/namespaces/default/secrets", strings.NewReader(`{"metadata":{"name":"login"},"stringData":{"user":"me"}}`))
	request.Header.Set("Content-Type", "application/json")
	server.ServeHTTP(httptest.NewRecorder(), request)

	made, err := kinds.Secrets().Engine().Get(ctx, "default/login", engine.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %s\n", made.Value.Type, made.Value.Data["user"])
	// Output: Opaque me
}

// A program that needs no other of the kinds opens a store of ConfigMaps alone.
func ExampleConfigMap() {
	maps, err := registry.New(corekinds.ConfigMap())
	if err != nil {
		log.Fatal(err)
	}
	defer maps.Close()
	wrong := core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string]string{"a/b": ""}}
	_, err = maps.Create(context.Background(), wrong, registry.WriteOptions{})
	fmt.Println(strings.HasPrefix(err.Error(), `ConfigMap "a" is invalid: data[a/b]: Invalid value: "a/b"`))
	// Output: true
}

// Storage has what writers give as stringData as data.
func ExampleSecret() {
	secrets, err := registry.New(corekinds.Secret())
	if err != nil {
		log.Fatal(err)
	}
	defer secrets.Close()
	login := core.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "login"}, StringData: map[string]string{"user": "me"}}
	made, err := secrets.Create(context.Background(), login, registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %s\n", made.Value.Type, made.Value.Data["user"])
	// Output: Opaque me
}

// The program's own kinds create nothing in a namespace that is being deleted either.
func ExampleKinds_Admit() {
	ctx := context.Background()
	kinds, err := corekinds.New(ctx, corekinds.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer kinds.Close()
	widgets, err := registry.New(registry.Config[Widget]{
		Kind: registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}, Admit: []registry.Admitter{kinds},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer widgets.Close()

	shop, err := kinds.Namespaces().Create(ctx, core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, registry.WriteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	marked, _, err := kinds.Namespaces().Delete(ctx, shop.Key, registry.DeleteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	if err := kinds.Namespaces().Engine().WaitForRevision(ctx, marked.Revision); err != nil { // admitters read the cache
		log.Fatal(err)
	}
	_, err = widgets.Create(ctx, Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}, registry.WriteOptions{})
	fmt.Println(err)
	// Output: widgets.example.com "a" is forbidden: unable to create new content in namespace shop because it is being terminated
}

// A replica that learns the kinds of its origin by discovery shows their columns as the origin does.
func ExampleReplica() {
	discovered := registry.Kind{Version: "v1", Kind: "Secret", Plural: "secrets"}
	cfg, ok := corekinds.Replica(discovered)
	fmt.Println(ok)
	for _, c := range cfg.Columns {
		fmt.Println(c.Name)
	}
	// Output:
	// true
	// Type
	// Data
}
