package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/serve/access"
	"github.com/watchmill/watchmill/store/backend"
)

// reviews are the kinds by which clients ask which user they are and what users may do, as consoles do before they show
// a kind. Users may do everything, unless the server is a replica: its origin decides about what it passes on there.
type reviews struct {
	*access.Reviews
	asking *asking // nil if it is not a replica
}

// reviews opens the kinds.
func (d *data) reviews() (*reviews, error) {
	var cfg access.Config
	var asking *asking
	if d.origin != nil {
		var err error
		if asking, err = askOrigin(*d.origin); err != nil {
			return nil, err
		}
		cfg.Authorize, cfg.Rules = asking.authorize, asking.list
	}
	kinds, err := access.New(cfg)
	if err != nil {
		return nil, errors.Join(err, asking.close())
	}
	return &reviews{kinds, asking}, nil
}

// close gives up the connections to the origin.
func (r *reviews) close() error {
	if r == nil {
		return nil
	}
	return r.asking.close()
}

// asking asks the origin of a replica what the replica may do there, which is one user for it, whichever user asks here.
type asking struct{ access, rules *remote.Backend }

// askOrigin opens the way to the origin's reviews.
func askOrigin(origin remote.Config) (*asking, error) {
	of := func(kind string) (*remote.Backend, error) {
		format, err := registry.FormatOf(registry.Config[object]{Kind: registry.Kind{Group: "authorization.k8s.io", Version: "v1", Kind: kind, ClusterScoped: true}})
		if err != nil {
			return nil, err
		}
		return remote.New(format, origin)
	}
	one, err := of("SelfSubjectAccessReview")
	if err != nil {
		return nil, err
	}
	list, err := of("SelfSubjectRulesReview")
	if err != nil {
		return nil, errors.Join(err, one.Close())
	}
	return &asking{one, list}, nil
}

// readVerbs are those that a replica serves by itself, to all users, also while its origin does not answer.
var readVerbs = []string{"get", "list", "watch"}

// authorize refuses what the origin would refuse.
func (a *asking) authorize(ctx context.Context, _ serve.User, r *serve.Request) error {
	if !r.IsResource() || slices.Contains(readVerbs, r.Verb) {
		return nil
	}
	attributes := map[string]any{
		"verb": r.Verb, "group": r.Group, "version": r.Version, "resource": r.Resource, "subresource": r.Subresource, "namespace": r.Namespace, "name": r.Name,
	}
	if r.Labels != "" {
		attributes["labelSelector"] = map[string]any{"rawSelector": r.Labels}
	}
	if r.Fields != "" {
		attributes["fieldSelector"] = map[string]any{"rawSelector": r.Fields}
	}
	var status struct {
		Allowed                 bool
		Reason, EvaluationError string
	}
	answered, err := ask(ctx, a.access, map[string]any{"resourceAttributes": attributes}, &status)
	if err != nil || !answered || status.Allowed {
		return err
	}
	return fmt.Errorf("the upstream server refuses it: %s", cmp.Or(status.Reason, status.EvaluationError, "no rule allows it"))
}

// list lists what this server serves by itself, and what the origin allows. The error says why the list is incomplete.
func (a *asking) list(ctx context.Context, _ serve.User, namespace string) (access.Rules, error) {
	all := []string{"*"}
	rules := access.Rules{
		ResourceRules:    []access.ResourceRule{{Verbs: readVerbs, APIGroups: all, Resources: all}},
		NonResourceRules: []access.NonResourceRule{{Verbs: all, NonResourceURLs: all}},
	}
	var status struct {
		access.Rules
		Incomplete      bool
		EvaluationError string
	}
	answered, err := ask(ctx, a.rules, map[string]any{"namespace": namespace}, &status)
	switch {
	case err != nil:
		return rules, err
	case !answered:
		rules.ResourceRules[0].Verbs = all
		return rules, nil
	}
	rules.ResourceRules = append(rules.ResourceRules, status.ResourceRules...)
	if status.Incomplete {
		err = fmt.Errorf("the upstream server does not list all: %s", status.EvaluationError)
	}
	return rules, err
}

// ask has the origin answer a review with that spec. answered is false if it has no reviews, or none for the replica:
// then only the attempt tells what may be done, and consoles would not attempt what is not allowed.
func ask(ctx context.Context, origin *remote.Backend, spec, status any) (answered bool, err error) {
	question, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return false, err
	}
	answer, err := origin.ForwardCreate(ctx, "", question, registry.WriteOptions{})
	var refused *remote.StatusError
	var uncertain *backend.UncertainError
	switch {
	case errors.As(err, &refused) && slices.Contains([]int32{http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed}, refused.Status.Code):
		return false, nil
	case errors.As(err, &uncertain): // nothing was to be done
		return false, fmt.Errorf("the upstream server does not say whether it is allowed: %w", uncertain.Cause)
	case err != nil:
		return false, fmt.Errorf("the upstream server does not say whether it is allowed: %w", err)
	}
	review := struct{ Status any }{status}
	if err := json.Unmarshal(answer, &review); err != nil {
		return false, fmt.Errorf("the answer of the upstream server does not parse: %w", err)
	}
	return true, nil
}

// close gives up the connections.
func (a *asking) close() error {
	if a == nil {
		return nil
	}
	return errors.Join(a.access.Close(), a.rules.Close())
}
