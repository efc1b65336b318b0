package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/store"
)

// Served is a kind that a server serves.
type Served struct {
	// Kind has the Parts that the server has: writes of them are passed on as those of the objects are.
	Kind registry.Kind
	// Schema is the kind's OpenAPI schema; nil if the server has none, or one that refers
	// to others than that of metadata.
	Schema json.RawMessage
	// ReadOnly: the server takes no writes of its objects.
	ReadOnly bool
}

// discoveryType asks for all groups in one document.
const discoveryType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discovery is the part of that document that is read.
type discovery struct {
	Items []struct {
		Metadata struct{ Name string }
		Versions []struct {
			Version   string
			Resources []discovered
		}
	}
	// Groups and Versions are what a server answers with that has no such document: at /apis and at
	// /api, without their kinds.
	Groups, Versions []json.RawMessage
}

// discovered is a resource in a discovery.
type discovered struct {
	Resource         string
	ResponseKind     schema.GroupVersionKind
	Scope            string
	SingularResource string
	Verbs            []string
	ShortNames       []string
	Categories       []string
	Subresources     []struct {
		Subresource  string
		ResponseKind schema.GroupVersionKind
		Verbs        []string
	}
}

// Kinds returns the kinds that can be listed and watched at the server that cfg names,
// each in the version of it that its group prefers, in the server's order, those of the core
// group first. It sends two requests for the groups and one for the schemas of each such
// version, and blocks for at most [Config].RequestTimeout.
//
// Errors: [usercode.ErrConfig], a [*StatusError], [backend.ErrUnavailable], a [*SizeError],
// [store.ErrUnsupported] if the server has no aggregated discovery, as Kubernetes before 1.30,
// the error of a document that does not parse, or ctx's cause.
func Kinds(ctx context.Context, cfg Config) ([]Served, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	client := cfg.Client
	if client == nil {
		client = newClient(cfg.TLS)
		defer client.CloseIdleConnections()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.RequestTimeout, cfg.noAnswer())
	defer cancel()
	core, err := cfg.discover(ctx, client, "/api")
	if err != nil && !isNotServed(err) {
		return nil, err
	}
	named, err := cfg.discover(ctx, client, "/apis")
	if err != nil {
		return nil, err
	}
	var served []Served
	for _, group := range append(core.Items, named.Items...) {
		for _, v := range group.Versions {
			kinds := kindsOf(group.Metadata.Name, v.Version, v.Resources)
			kinds = slices.DeleteFunc(kinds, func(k Served) bool { return hasKind(served, &k.Kind) }) // in a version that is preferred
			if len(kinds) == 0 {
				continue
			}
			if err := cfg.addSchemas(ctx, client, kinds); err != nil {
				return nil, err
			}
			served = append(served, kinds...)
		}
	}
	return served, nil
}

// hasKind reports whether a kind is among others, in whatever version.
func hasKind(all []Served, k *registry.Kind) bool {
	return slices.ContainsFunc(all, func(s Served) bool { return s.Kind.GroupResource() == k.GroupResource() })
}

// discover requests the groups at a path with their kinds.
func (c *Config) discover(ctx context.Context, client *http.Client, path string) (discovery, error) {
	var found discovery
	if err := c.getJSON(ctx, client, path, discoveryType, &found); err != nil {
		return discovery{}, err
	}
	if len(found.Groups) > 0 || len(found.Versions) > 0 {
		return discovery{}, fmt.Errorf("%w: the server at %s has no aggregated discovery at %s (apidiscovery.k8s.io/v2), so that its kinds are unknown: name them",
			store.ErrUnsupported, c.URL, path)
	}
	return found, nil
}

// isNotServed reports whether the server does not have the path that it was asked for: one of
// custom resources alone has none for the core group, and some have no schemas.
func isNotServed(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status.Code == http.StatusNotFound
}

// kindsOf returns the kinds of a version that can be listed and watched.
func kindsOf(group, version string, resources []discovered) []Served {
	var kinds []Served
	for _, r := range resources {
		if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "watch") {
			continue
		}
		k := registry.Kind{
			Group: group, Version: version, Kind: r.ResponseKind.Kind, Plural: r.Resource, Singular: r.SingularResource,
			ShortNames: r.ShortNames, Categories: r.Categories, ClusterScoped: r.Scope == "Cluster",
		}
		k.Status, k.Parts = r.parts()
		kinds = append(kinds, Served{Kind: k, ReadOnly: !slices.ContainsFunc(r.Verbs, isWrite)})
	}
	return kinds
}

// parts returns which subresources change objects: whether there is one of the status, and the further ones.
func (r *discovered) parts() (status bool, parts []registry.Part) {
	seen := map[string]bool{"scale": true}
	for _, sub := range r.Subresources {
		verbs := slices.DeleteFunc(slices.Clone(sub.Verbs), func(verb string) bool { return verb != "get" && verb != "patch" && verb != "update" })
		switch {
		case sub.Subresource == "status":
			status = true
		case sub.ResponseKind != r.ResponseKind, !slices.ContainsFunc(verbs, isWrite): // it does something else, as an eviction does
		case !seen[sub.Subresource] && len(validation.IsDNS1035Label(sub.Subresource)) == 0: // as a part must be named
			seen[sub.Subresource] = true
			parts = append(parts, registry.Part{Name: sub.Subresource, Verbs: verbs})
		}
	}
	return status, parts
}

// isWrite reports whether a verb of a resource that can be listed and watched changes objects.
func isWrite(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) }

// addSchemas sets the schemas of kinds, which are of one version, from the server's OpenAPI
// document of that.
func (c *Config) addSchemas(ctx context.Context, client *http.Client, kinds []Served) error {
	var doc struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := c.getJSON(ctx, client, "/openapi/v3"+kinds[0].Kind.APIPath(), jsonType, &doc); err != nil && !isNotServed(err) {
		return err
	}
	for _, text := range doc.Components.Schemas {
		var of struct {
			Kinds []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
		}
		if json.Unmarshal(text, &of) != nil || len(of.Kinds) == 0 {
			continue
		}
		if text = withoutMetadataRefs(text); refers(text) {
			continue
		}
		for i := range kinds {
			k := &kinds[i]
			if slices.Contains(of.Kinds, k.Kind.GroupVersionKind()) {
				k.Schema = text
			}
		}
	}
	return nil
}

// refers reports whether a schema refers to others.
func refers(text []byte) bool { return bytes.Contains(text, []byte(`"$ref"`)) }

// withoutMetadataRefs returns a schema in which metadata is an object, where it refers to the
// schema of all metadata: Kubernetes has such references in the schema of every custom resource,
// and a server of the kind knows what metadata has.
func withoutMetadataRefs(text json.RawMessage) json.RawMessage {
	if !refers(text) {
		return text
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var schema any
	if err := decoder.Decode(&schema); err != nil {
		return text // cannot happen: it has been decoded before
	}
	replaced, err := json.Marshal(replaceMetadataRefs(schema))
	if err != nil {
		return text // cannot happen: it was JSON
	}
	return replaced
}

// replaceMetadataRefs replaces the schemas within a part of a schema that refer to that of
// metadata.
func replaceMetadataRefs(part any) any {
	switch p := part.(type) {
	case map[string]any:
		if refersToMetadata(p) {
			delete(p, "$ref")
			delete(p, "allOf")
			p["type"] = "object"
			return p
		}
		for name, member := range p {
			p[name] = replaceMetadataRefs(member)
		}
	case []any:
		for i, item := range p {
			p[i] = replaceMetadataRefs(item)
		}
	}
	return part
}

// refersToMetadata reports whether a schema is a reference to that of metadata, in either form.
func refersToMetadata(schema map[string]any) bool {
	if all, isList := schema["allOf"].([]any); isList && len(all) == 1 {
		only, isSchema := all[0].(map[string]any)
		return isSchema && refersToMetadata(only)
	}
	ref, isText := schema["$ref"].(string)
	return isText && strings.HasSuffix(ref, "/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
}

// getJSON requests a document and decodes it into what into points to.
func (c *Config) getJSON(ctx context.Context, client *http.Client, path, accept string, into any) error {
	resp, err := c.send(ctx, client, outgoing{method: http.MethodGet, url: c.URL + path, accept: accept})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := readBody(ctx, resp.Body, c.tooLarge(http.MethodGet+" "+c.URL+path))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s%s: the server's document does not parse: %w", c.URL, path, err)
	}
	return nil
}
