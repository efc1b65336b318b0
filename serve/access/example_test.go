package access_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/access"
)

// kubectl auth can-i asks by such a request.
func ExampleNew() {
	rules := access.Config{Authorize: func(_ context.Context, _ serve.User, r *serve.Request) error {
		if r.Verb == "delete" {
			return errors.New("nothing is deleted here")
		}
		return nil
	}}
	reviews, err := access.New(rules)
	if err != nil {
		log.Fatal(err)
	}
	server, err := serve.New(serve.Config{Resources: []serve.Provider{reviews}, Authorize: rules.Authorize})
	if err != nil {
		log.Fatal(err)
	}
	for _, verb := range []string{"get", "delete"} {
		question := fmt.Sprintf(`{"spec":{"resourceAttributes":{"group":"example.com","resource":"lamps","verb":%q}}}`, verb)
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, httptest.NewRequest("POST", "http://localhost/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", strings.NewReader(question)))
		fmt.Println(verb, strings.Contains(answer.Body.String(), `"allowed":true`))
	}
	// Output:
	// get true
	// delete false
}
