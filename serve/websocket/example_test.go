package websocket_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	library "github.com/coder/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/websocket"
)

func ExampleNew() {
	ctx := context.Background()
	widgets, err := registry.New(registry.Config[Widget]{Kind: widgetKind})
	if err != nil {
		fmt.Println(err)
		return
	}
	upgrader, err := websocket.New(websocket.Options{Origins: []string{"https://console.example.com"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler, err := serve.New(serve.Config{Resources: []serve.Provider{widgets}, WebSocket: upgrader})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	defer widgets.Close() // which ends its watches

	// A browser would say: new WebSocket("ws://…?watch=1").onmessage = …
	browser, _, err := library.Dial(ctx, server.URL+"/apis/example.com/v1/widgets?watch=1", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer browser.CloseNow()
	_, err = widgets.Create(ctx, Widget{ObjectMeta: metav1.ObjectMeta{Name: "gear", Namespace: "default"}}, registry.WriteOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, event, err := browser.Read(ctx)
	fmt.Println(string(event[:24]), err)
	// Output: {"type":"ADDED","object" <nil>
}
