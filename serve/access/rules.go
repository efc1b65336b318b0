package access

import (
	"context"
	"errors"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// Rules are what a user may do in a namespace, in the form in which clients get it.
type Rules struct {
	ResourceRules    []ResourceRule    `json:"resourceRules" description:"What the user may do to resources."`
	NonResourceRules []NonResourceRule `json:"nonResourceRules" description:"What the user may do at other paths."`
}

// ResourceRule allows each of the verbs for each of the resources in each of the groups; "*" is all of them.
type ResourceRule struct {
	Verbs     []string `json:"verbs" description:"The verbs, such as get, list, watch, create, update, patch and delete."`
	APIGroups []string `json:"apiGroups,omitempty" description:"The groups of the resources."`
	// Resources are names such as "widgets", "widgets/status", and "*/status" for the status of all.
	Resources []string `json:"resources,omitempty" description:"The resources, such as widgets and widgets/status."`
	// ResourceNames are the objects that may be meant; none means all of them.
	ResourceNames []string `json:"resourceNames,omitempty" description:"The names of the objects. Without any, all objects."`
}

// NonResourceRule allows each of the verbs, which are methods of HTTP in lower case, at each of the paths. A path may
// end with the step "*"; "*" is all of them.
type NonResourceRule struct {
	Verbs           []string `json:"verbs" description:"The methods of HTTP in lower case."`
	NonResourceURLs []string `json:"nonResourceURLs,omitempty" description:"The paths. The last step may be an asterisk."`
}

// everything are the rules of a server without Authorize.
var everything = Rules{
	ResourceRules:    []ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
	NonResourceRules: []NonResourceRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
}

// listRules lists what the user that asks may do in a namespace, as far as that can be listed.
func (c *Config) listRules(ctx context.Context, review *selfSubjectRulesReview) error {
	if review.Spec.Namespace == "" {
		return &registry.BadRequestError{Reason: "no namespace on request"} // no invalid field, as in Kubernetes
	}
	rules, err := c.rulesOf(ctx, userOf(ctx), review.Spec.Namespace)
	review.Status = rulesStatus{Rules: Rules{ // the lists are required
		ResourceRules:    append([]ResourceRule{}, rules.ResourceRules...),
		NonResourceRules: append([]NonResourceRule{}, rules.NonResourceRules...),
	}}
	if err != nil {
		review.Status.Incomplete, review.Status.EvaluationError = true, err.Error()
	}
	return nil
}

// rulesOf returns what a user may do in a namespace. With an error it is incomplete.
func (c *Config) rulesOf(ctx context.Context, u serve.User, namespace string) (Rules, error) {
	switch {
	case c.Rules != nil:
		return c.Rules(ctx, u, namespace)
	case c.Authorize == nil:
		return everything, nil
	}
	return Rules{}, errNotListed
}

// errNotListed: there is an Authorize without Rules.
var errNotListed = errors.New("this server decides each request and does not list its rules: ask whether you can do one thing")
