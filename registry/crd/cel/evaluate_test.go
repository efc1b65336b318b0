package cel_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/crd/cel"
)

// gear is a schema of all that a rule may have.
const gear = `x-kubernetes-validations: [
    {rule: 'self.metadata.name.startsWith("g")', message: the name begins with g},
    {rule: '!has(self.status) || self.status.teeth <= self.spec.teeth', reason: FieldValueForbidden, fieldPath: .status.teeth, message: more than there are}],
  properties: {
    spec: {type: object, required: [teeth], properties: {
      teeth: {type: integer, x-kubernetes-validations: [{rule: self % 2 == 0, messageExpression: '"%d is odd".format([self])'}]},
      metal: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: is fixed}]},
      age: {type: integer, x-kubernetes-validations: [{rule: 'self >= oldSelf.orValue(0) && (oldSelf.hasValue() || self == 0)', optionalOldSelf: true, message: begins at 0 and grows}]},
      port: {x-kubernetes-int-or-string: true, x-kubernetes-validations: [{rule: 'type(self) == int ? self > 0 : size(self) > 1'}]},
      parts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {
        name: {type: string}, wear: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf, message: wear grows}]}}}},
      limits: {type: object, additionalProperties: {type: integer, x-kubernetes-validations: [{rule: 10 / self > 1}]}}}},
    status: {type: object, required: [teeth], properties: {teeth: {type: integer}}}}`

func TestRules_HoldForEveryWrite(t *testing.T) {
	resources := gears(t, gear)
	object, status, scale := resources[0], resources[1], resources[2]
	create := func(name, spec string) error {
		_, err := object.Create(t.Context(), "default", inJSON(t, "{metadata: {name: "+name+"}, spec: "+spec+"}"), registry.WriteOptions{})
		return err
	}
	update := func(of registry.Resource, fields string) error {
		_, _, err := of.Update(t.Context(), "default/g", func(live registry.Item) ([]byte, error) {
			return inJSON(t, "{metadata: {name: g, resourceVersion: '"+live.Revision().String()+"'}, "+fields+"}"), nil
		}, registry.WriteOptions{})
		return err
	}
	apply := func(fields string) error {
		_, _, err := object.Apply(t.Context(), "default/g", inJSON(t, "{apiVersion: example.com/v1, kind: Gear, metadata: {name: g}, "+fields+"}"), registry.WriteOptions{Manager: "m", Force: true})
		return err
	}
	for want, err := range map[string]error{
		"the name begins with g":                        create("h", "{teeth: 2}"),
		"spec.teeth: Invalid value: 3: 3 is odd":        create("g", "{teeth: 3}"),
		"spec.age: Invalid value: 1: begins at 0":       create("g", "{teeth: 2, age: 1}"),
		"spec.port: Invalid value: 0: failed rule":      create("g", "{teeth: 2, port: 0}"),
		"spec.port: Invalid value":                      create("g", "{teeth: 2, port: x}"),
		"spec.limits[a]: Invalid value: 8: failed rule": create("g", "{teeth: 2, limits: {a: 8}}"),
		"division by zero evaluating rule: 10 / self":   create("g", "{teeth: 2, limits: {a: 0}}"),
	} {
		requireInvalid(t, err, want)
	}
	require.NoError(t, create("g", "{teeth: 8, metal: tin, age: 0, port: 80, parts: [{name: a, wear: 2}, {name: b, wear: 1}], limits: {a: 3}}"))
	const tin = "metal: tin, parts: [{name: b, wear: 1}, {name: a, wear: 2}]"
	requireInvalid(t, update(object, "spec: {teeth: 8, metal: lead}"), `spec.metal: Invalid value: "lead": is fixed`)
	requireInvalid(t, update(object, "spec: {teeth: 8, metal: tin, parts: [{name: b, wear: 3}, {name: a, wear: 1}]}"), "spec.parts[1].wear: Invalid value: 1: wear grows")
	require.NoError(t, update(object, "spec: {teeth: 8, age: 4, "+tin+"}"))
	requireInvalid(t, update(object, "spec: {teeth: 8, age: 3, "+tin+"}"), "spec.age: Invalid value: 3: begins at 0 and grows")
	requireInvalid(t, update(status, "status: {teeth: 9}"), "status.teeth: Forbidden: more than there are")
	require.NoError(t, update(status, "status: {teeth: 7}"))
	requireInvalid(t, update(scale, "spec: {replicas: 6}"), "status.teeth: Forbidden: more than there are")
	requireInvalid(t, update(scale, "spec: {replicas: 9}"), "9 is odd")
	require.NoError(t, update(scale, "spec: {replicas: 10}"))
	requireInvalid(t, apply("spec: {teeth: 11}"), "11 is odd")
	require.NoError(t, apply("spec: {teeth: 12}"))
}

func requireInvalid(t *testing.T, err error, mention string) {
	t.Helper()
	var invalid *registry.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.ErrorContains(t, err, mention)
}

// What was stored before there was a rule may stay as it is, with a warning. A rule of a change
// is about the change, and has no such exception.
func TestRules_AllowWhatAnUpdateLeavesAsItWas(t *testing.T) {
	evaluate := cel.Rules{}.Compile(inJSON(t, `{type: object, properties: {spec: {type: object, properties: {
		teeth: {type: integer, x-kubernetes-validations: [{rule: self > 3, message: too few}]},
		wear: {type: integer, x-kubernetes-validations: [{rule: self > oldSelf, message: wear grows}]},
		parts: {type: array, items: {type: object, x-kubernetes-validations: [{rule: self.a > 3, message: a part too small}], properties: {a: {type: integer}}}}}}}}`))
	for _, c := range []struct{ old, now, wrong, warning string }{
		{"{teeth: 1}", "{teeth: 1, wear: 1}", "", "spec.teeth: Invalid value: 1: too few"},
		{"{teeth: 1}", "{teeth: 2}", "spec.teeth: Invalid value: 2: too few", ""},
		{"{teeth: 4}", "{teeth: 2}", "spec.teeth: Invalid value: 2: too few", ""},
		{"{wear: 1}", "{wear: 1}", "spec.wear: Invalid value: 1: wear grows", ""},
		{"{parts: [{a: 1}]}", "{parts: [{a: 1}], teeth: 9}", "", "spec.parts[0]: Invalid value: a part too small"},
		{"{parts: [{a: 1}]}", "{parts: [{a: 9}, {a: 1}]}", "spec.parts[1]: Invalid value: a part too small", ""},
	} {
		wrong, warnings := evaluate(t.Context(), object(t, "spec: "+c.now), object(t, "spec: "+c.old))
		text := ""
		if len(wrong) > 0 {
			text = wrong.ToAggregate().Error()
		}
		require.Equal(t, c.wrong, text, c)
		require.Equal(t, c.warning, strings.Join(warnings, "\n"), c)
	}
}

// A rule whose estimate was lower ends when it has cost as much as a rule may.
func TestRules_EndWhenTheyCostTooMuch(t *testing.T) {
	pattern := strings.Repeat("z", 60) // the cost is the product of its length and that of the text
	evaluate := cel.Rules{}.Compile(inJSON(t, `{type: object, properties: {spec: {type: object, properties: {name: {type: string,
		x-kubernetes-validations: [{rule: '!self.matches("`+pattern+`")'}]}}}}}`))
	wrong, _ := evaluate(t.Context(), object(t, "spec: {name: a}"), nil)
	require.Empty(t, wrong)
	o := object(t, "spec: {}")
	require.NoError(t, unstructured.SetNestedField(o.Object, strings.Repeat("a", 1<<20), "spec", "name"))
	wrong, _ = evaluate(t.Context(), o, nil)
	require.Len(t, wrong, 1)
	require.Contains(t, wrong[0].Detail, "call cost exceeds limit")
}

// A stored definition may have rules that another version does not compile.
func TestCompile_OfARuleThatIsWrongRefusesEveryObject(t *testing.T) {
	for schema, mention := range map[string]string{
		`{type: object, x-kubernetes-validations: [{rule: self.nothing}]}`:                                  "rule compile error",
		`{type: object, x-kubernetes-validations: [{rule: "true"}], properties: {a: {$ref: '#/b'}}}`:        "cannot be evaluated",
		`{type: object, x-kubernetes-validations: [{rule: "true"}], properties: {a: {nullable: "a text"}}}`: "cannot be evaluated",
	} {
		evaluate := cel.Rules{}.Compile(inJSON(t, schema))
		for range 2 {
			wrong, _ := evaluate(t.Context(), object(t, "spec: {}"), nil)
			require.Len(t, wrong, 1, schema)
			require.Contains(t, wrong[0].Error(), mention)
		}
	}
}

// All writers wait for the first to compile the rules.
func TestCompile_ServesManyWritersAtOnce(t *testing.T) {
	object := gears(t, gear)[0]
	errs := make([]error, 16)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			_, err := object.Create(t.Context(), "default", []byte(`{"metadata":{"generateName":"g"},"spec":{"teeth":3}}`), registry.WriteOptions{})
			if !strings.Contains(err.Error(), "3 is odd") {
				errs[i] = err
			}
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
}
