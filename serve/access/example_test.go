package access_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"slices"
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

// A server whose rules are a table decides by it, and lists it for kubectl auth can-i --list.
func ExampleConfig_rules() {
	table := []access.ResourceRule{{Verbs: []string{"get", "list"}, APIGroups: []string{"example.com"}, Resources: []string{"lamps"}}}
	rules := access.Config{
		Authorize: func(_ context.Context, _ serve.User, r *serve.Request) error {
			for _, rule := range table {
				if slices.Contains(rule.Verbs, r.Verb) && slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, r.Resource) {
					return nil
				}
			}
			if access.AsksAboutItself(r) || !r.IsResource() {
				return nil // all may ask, and read which kinds there are
			}
			return errors.New("lamps are read here")
		},
		Rules: func(context.Context, serve.User, string) (access.Rules, error) {
			return access.Rules{ResourceRules: table}, nil
		},
	}
	reviews, err := access.New(rules)
	if err != nil {
		log.Fatal(err)
	}
	server, err := serve.New(serve.Config{Resources: []serve.Provider{reviews}, Authorize: rules.Authorize})
	if err != nil {
		log.Fatal(err)
	}
	answer := httptest.NewRecorder()
	question := strings.NewReader(`{"spec":{"namespace":"default"}}`)
	server.ServeHTTP(answer, httptest.NewRequest("POST", "http://localhost/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", question))
	_, status, _ := strings.Cut(answer.Body.String(), `"status":`)
	fmt.Println(status)
	// Output:
	// {"resourceRules":[{"verbs":["get","list"],"apiGroups":["example.com"],"resources":["lamps"]}],"nonResourceRules":[],"incomplete":false}}
}
