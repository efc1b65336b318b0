package openapi_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/watchmill/watchmill/registry/internal/openapi"
	"github.com/watchmill/watchmill/registry/internal/openapi/testdata/v1"
)

type named struct {
	Name string `json:"name" description:"What it is called."`
}

// Labels and secrets are embedded: the one is a field of that name, the other none.
type (
	Labels  map[string]string
	secrets []string
)

// These have themselves within them, each in another way.
type (
	nested struct {
		Parts []nested `json:"parts,omitempty"`
	}
	tree   map[string]tree
	forest map[string][]forest
	terms  []terms
	pair   [2]*pair
	link   *link
)

func TestOf_TypesHaveTheirSchemas(t *testing.T) {
	for want, value := range map[string]any{
		`{"type":"boolean"}`:                                              false,
		`{"type":"integer","format":"int64"}`:                             0,
		`{"type":"integer","format":"int32"}`:                             int32(0),
		`{"type":"number"}`:                                               0.5,
		`{"type":"string"}`:                                               "",
		`{"type":"string","format":"byte"}`:                               []byte{},
		`{"type":"string","format":"date-time"}`:                          metav1.Time{},
		`{"x-kubernetes-int-or-string":true}`:                             intstr.IntOrString{},
		`{"type":"array","items":{"type":"string"}}`:                      []string{},
		`{"x-kubernetes-preserve-unknown-fields":true}`:                   make(chan int),
		`{"type":"object","x-kubernetes-preserve-unknown-fields":true}`:   unstructured.Unstructured{},
		`{"type":"object","additionalProperties":{"type":"boolean"}}`:     map[string]bool{},
		`{"type":"object","description":"Standard object's metadata."}`:   metav1.ObjectMeta{},
		`{"type":"array","items":{"type":"string","format":"date-time"}}`: []*time.Time{},
	} {
		require.JSONEq(t, want, string(openapi.Of(reflect.TypeOf(value))))
	}
}

// A package of one's own has the name v1 as often as not.
func TestOf_ATypeIsNotKnownByItsNameAlone(t *testing.T) {
	require.JSONEq(t, `{"type":"string"}`, string(openapi.Of(reflect.TypeFor[metav1.Duration]())))
	require.JSONEq(t, `{"x-kubernetes-int-or-string":true}`, string(openapi.Of(reflect.TypeFor[resource.Quantity]())))
	require.JSONEq(t, `{"type":"object","properties":{"days":{"type":"integer","format":"int64"}},"required":["days"]}`,
		string(openapi.Of(reflect.TypeFor[v1.Duration]())))
}

func TestOf_FieldsHaveTheirTags(t *testing.T) {
	type tagged struct {
		named `json:",inline"`
		Labels
		secrets
		Size     int               `json:"size,omitempty"`
		Quoted   int               `json:"quoted,string"`
		Ports    []named           `json:"ports,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
		Set      []string          `json:"set,omitempty" patchStrategy:"merge"`
		Whole    map[string]string `json:"whole,omitempty" patchStrategy:"replace"`
		Hidden   int               `json:"-"`
		internal int
	}
	require.Zero(t, tagged{}.internal)
	require.Empty(t, tagged{}.secrets)
	require.JSONEq(t, `{
		"type": "object",
		"required": ["name", "Labels", "quoted"],
		"properties": {
			"name": {"type": "string", "description": "What it is called."},
			"Labels": {"type": "object", "additionalProperties": {"type": "string"}},
			"size": {"type": "integer", "format": "int64"},
			"quoted": {"type": "string"},
			"ports": {
				"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
				"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
				"items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "description": "What it is called."}}}
			},
			"set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
			"whole": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic", "x-kubernetes-patch-strategy": "replace"}
		}
	}`, string(openapi.Of(reflect.TypeFor[tagged]())))
}

func TestOf_ATypeWithinItselfEnds(t *testing.T) {
	const anything = `{"x-kubernetes-preserve-unknown-fields":true}`
	const anyObject = `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
	for want, of := range map[string]reflect.Type{
		`{"type":"object","properties":{"parts":{"type":"array","items":` + anyObject + `}}}`: reflect.TypeFor[nested](),
		`{"type":"object","additionalProperties":` + anyObject + `}`:                          reflect.TypeFor[tree](),
		`{"type":"object","additionalProperties":{"type":"array","items":` + anyObject + `}}`: reflect.TypeFor[forest](),
		`{"type":"array","items":` + anything + `}`:                                           reflect.TypeFor[terms](),
		`{"type":"array","items":{"type":"array","items":` + anything + `}}`:                  reflect.TypeFor[[]pair](),
		anything: reflect.TypeFor[link](),
	} {
		require.JSONEq(t, want, string(openapi.Of(of)), of)
	}
}

// versioned is inlined in structs of which one has a field of that name.
type versioned struct {
	Size  int    `json:"size"`
	Color string `json:"color"`
}

// Merging and validation go by the schema, so it describes the field that JSON has.
func TestOf_AFieldHidesOneThatIsInlined(t *testing.T) {
	type lamp struct {
		Size string `json:"size,omitempty"`
		versioned
	}
	require.JSONEq(t, `{"type":"object","properties":{"size":{"type":"string"},"color":{"type":"string"}},"required":["color"]}`,
		string(openapi.Of(reflect.TypeFor[lamp]())))
}

// Chained is inlined in itself, as encoding/json allows.
type Chained struct {
	*Chained
	Name string `json:"name"`
}

func TestOf_ATypeInlinedInItselfEnds(t *testing.T) {
	require.JSONEq(t, `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`, string(openapi.Of(reflect.TypeFor[Chained]())))
}

// box is documented as Kubernetes' types are.
type box struct {
	metav1.TypeMeta `json:",inline"`
	Size            int   `json:"size,omitempty"`
	Lid             named `json:"lid,omitempty"`
	Inner           *lid  `json:"inner,omitempty"`
	Lids            []lid `json:"lids,omitempty" description:"All of them."`
}

func (box) SwaggerDoc() map[string]string {
	return map[string]string{"": "A box.", "size": "How large it is.", "lids": "not this"}
}

// lid is documented, too.
type lid struct {
	Round bool `json:"round,omitempty"`
}

func (lid) SwaggerDoc() map[string]string {
	return map[string]string{"": "A lid.", "round": "Whether it is round."}
}

// Fields without a tag have the descriptions that their struct gives them, or their types.
func TestOf_DescriptionsAreThoseOfKubernetesTypes(t *testing.T) {
	const (
		round = `{"type":"object","description":%q,"properties":{"round":{"type":"boolean","description":"Whether it is round."}}}`
		size  = `"size":{"type":"integer","format":"int64"`
	)
	properties := size + `,"description":"How large it is."},
		"lid":{"type":"object","properties":{"name":{"type":"string","description":"What it is called."}},"required":["name"]},
		"inner":` + fmt.Sprintf(round, "A lid.") + `,
		"lids":{"type":"array","description":"All of them.","items":` + fmt.Sprintf(round, "A lid.") + `}`
	const typeMeta = `"apiVersion":{"type":"string","description":"APIVersion defines the versioned schema of this representation of an object."},
		"kind":{"type":"string","description":"Kind is the type of object that this is, in camel case."},`
	require.JSONEq(t, `{"type":"object","description":"A box.","properties":{`+typeMeta+properties+`}}`, string(openapi.Of(reflect.TypeFor[box]())))

	// What embeds one is another type, whose own fields are not those that are described.
	type outer struct {
		*lid `json:",inline"`
		Size int `json:"size,omitempty"`
	}
	type outermost struct {
		outer `json:",inline"`
		Color string `json:"round,omitempty"`
	}
	require.JSONEq(t, `{"type":"object","properties":{"round":{"type":"boolean","description":"Whether it is round."},`+size+`}}}`, string(openapi.Of(reflect.TypeFor[outer]())))
	require.JSONEq(t, `{"type":"object","properties":{"round":{"type":"string"},`+size+`}}}`, string(openapi.Of(reflect.TypeFor[outermost]())))
}
