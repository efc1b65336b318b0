package websocket_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
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

// A browser cannot send a header, so it puts its token among the subprotocols.
func ExampleTokens() {
	users := serve.BearerTokens(map[string]serve.User{"secret": {Name: "ada"}})
	authenticate := websocket.Tokens(users)

	handshake := httptest.NewRequest("GET", "/apis/example.com/v1/widgets?watch=1", nil)
	handshake.Header.Set("Connection", "Upgrade")
	handshake.Header.Set("Upgrade", "websocket")
	token := base64.RawURLEncoding.EncodeToString([]byte("secret"))
	handshake.Header.Set("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io."+token+", watch")

	user, err := authenticate(handshake)
	fmt.Println(user.Name, err)
	// Output: ada <nil>
}

// An Upgrader without a [serve.Server]: a handler of the program's own upgrades requests.
func ExampleUpgrader() {
	ctx := context.Background()
	upgrader, err := websocket.New(websocket.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handshake, err := upgrader.Wants(r); err != nil || !handshake {
			http.Error(w, "WebSocket only", http.StatusBadRequest)
			return
		}
		messages, err := upgrader.Upgrade(w, r, func(error) {})
		if err != nil {
			return // it has been answered
		}
		_ = messages.Send(r.Context(), []byte("hello"))
		messages.Close(1000)
	}))
	defer server.Close()

	client, _, err := library.Dial(ctx, server.URL, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.CloseNow()
	_, text, err := client.Read(ctx)
	fmt.Println(string(text), err)
	_, _, err = client.Read(ctx)
	fmt.Println(library.CloseStatus(err))
	// Output:
	// hello <nil>
	// StatusNormalClosure
}
