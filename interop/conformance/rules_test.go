package conformance

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	_ "k8s.io/kubernetes/pkg/apis/events/install"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/corekinds"
)

// original is the validation of a kind in Kubernetes, of its internal type.
type original struct {
	version  schema.GroupVersion
	internal func() any
	create   func(o any) field.ErrorList
	update   func(o, old any) field.ErrorList
	// draw returns a random object, in the type of the version.
	draw func(r *rand.Rand) any
}

var originals = map[string]original{
	"configmaps": {v1.SchemeGroupVersion, func() any { return &core.ConfigMap{} },
		func(o any) field.ErrorList { return validation.ValidateConfigMap(o.(*core.ConfigMap)) },
		func(o, old any) field.ErrorList {
			return validation.ValidateConfigMapUpdate(o.(*core.ConfigMap), old.(*core.ConfigMap))
		}, drawConfigMap},
	"secrets": {v1.SchemeGroupVersion, func() any { return &core.Secret{} },
		func(o any) field.ErrorList { return validation.ValidateSecret(o.(*core.Secret)) },
		func(o, old any) field.ErrorList {
			return validation.ValidateSecretUpdate(o.(*core.Secret), old.(*core.Secret))
		}, drawSecret},
	"namespaces": {v1.SchemeGroupVersion, func() any { return &core.Namespace{} },
		func(o any) field.ErrorList { return validation.ValidateNamespace(o.(*core.Namespace)) },
		func(o, old any) field.ErrorList {
			return validation.ValidateNamespaceUpdate(o.(*core.Namespace), old.(*core.Namespace))
		}, drawNamespace},
	"events": {v1.SchemeGroupVersion, func() any { return &core.Event{} },
		func(o any) field.ErrorList {
			return validation.ValidateEventCreate(o.(*core.Event), v1.SchemeGroupVersion)
		},
		func(o, old any) field.ErrorList {
			return validation.ValidateEventUpdate(o.(*core.Event), old.(*core.Event), v1.SchemeGroupVersion)
		}, drawEvent},
	"events.events.k8s.io": {eventsv1.SchemeGroupVersion, func() any { return &core.Event{} },
		func(o any) field.ErrorList {
			return validation.ValidateEventCreate(o.(*core.Event), eventsv1.SchemeGroupVersion)
		},
		func(o, old any) field.ErrorList {
			return validation.ValidateEventUpdate(o.(*core.Event), old.(*core.Event), eventsv1.SchemeGroupVersion)
		}, drawNewEvent},
}

// Random objects, and random changes of them, are refused for the same fields as in Kubernetes.
func TestRules_RefuseWhatKubernetesRefuses(t *testing.T) {
	kinds, err := corekinds.New(t.Context(), corekinds.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, kinds.Close()) })
	for _, resource := range kinds.Resources() {
		info := resource.Info()
		of, compared := originals[info.Kind.GroupResource().String()]
		if !compared || info.Subresource != "" {
			continue
		}
		t.Run(info.Kind.GroupResource().String(), func(t *testing.T) {
			r, refused := rand.New(rand.NewPCG(1, 2)), map[string]int{}
			for i := range 2000 {
				compareRules(t, resource, of, r, fmt.Sprintf("%s-%d", strings.ToLower(cmp.Or(info.Kind.Group, "core")), i), refused)
			}
			require.NotEmpty(t, refused)
			t.Logf("refused: %v", refused)
		})
	}
}

// compareRules creates a random object and, if it is taken, updates it to another one. It counts what is refused.
func compareRules(t *testing.T, resource registry.Resource, of original, r *rand.Rand, name string, refused map[string]int) {
	t.Helper()
	first := of.draw(r)
	namespace := ""
	if !resource.Info().Kind.ClusterScoped {
		namespace = "default"
	}
	named(first, namespace, name)
	made, err := resource.Create(t.Context(), namespace, encode(t, first), registry.WriteOptions{})
	require.Equal(t, fields(of.create(of.asInternal(t, first))), fieldsOf(t, err, refused), "%s", encode(t, first))
	if err != nil {
		return
	}
	next := of.draw(r)
	named(next, namespace, name)
	stored, err := made.JSON()
	require.NoError(t, err)
	old := reflect.New(reflect.TypeOf(next).Elem()).Interface()
	require.NoError(t, json.Unmarshal(stored, old))
	next.(metav1.Object).SetResourceVersion("")
	_, _, err = resource.Update(t.Context(), made.Key(), func(registry.Item) ([]byte, error) { return encode(t, next), nil }, registry.WriteOptions{})
	was := old.(metav1.Object)
	next.(metav1.Object).SetResourceVersion(was.GetResourceVersion()) // of which the validation makes sure
	next.(metav1.Object).SetUID(was.GetUID())
	next.(metav1.Object).SetCreationTimestamp(was.GetCreationTimestamp())
	require.Equal(t, fields(of.update(of.asInternal(t, next), of.asInternal(t, old))), fieldsOf(t, err, refused), "%s after %s", encode(t, next), stored)
}

func named(o any, namespace, name string) {
	o.(metav1.Object).SetNamespace(namespace)
	o.(metav1.Object).SetName(name)
}

func encode(t *testing.T, o any) []byte {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	return text
}

// asInternal returns an object with Kubernetes' defaults, in its internal type.
func (of original) asInternal(t *testing.T, o any) any {
	t.Helper()
	converted := of.internal()
	defaulted := reflect.New(reflect.TypeOf(o).Elem()).Interface().(runtime.Object) // as decoded
	require.NoError(t, json.Unmarshal(encode(t, o), defaulted))
	legacyscheme.Scheme.Default(defaulted)
	require.NoError(t, legacyscheme.Scheme.Convert(defaulted, converted, nil))
	return converted
}

// fields returns the fields that are wrong, and how.
func fields(wrong field.ErrorList) []string {
	all := []string{}
	for _, e := range wrong {
		all = append(all, string(e.Type)+" "+e.Field)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// fieldsOf is fields for the error of a write.
func fieldsOf(t *testing.T, err error, refused map[string]int) []string {
	t.Helper()
	if err == nil {
		return fields(nil)
	}
	invalid, ok := errors.AsType[*registry.InvalidError](err)
	require.True(t, ok, err)
	for _, what := range fields(invalid.Errors) {
		refused[strings.Split(what, "[")[0]]++
	}
	return fields(invalid.Errors)
}

// one returns one of several values.
func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// drawData returns up to two entries with these keys.
func drawData[V any](r *rand.Rand, value func() V, keys ...string) map[string]V {
	data := map[string]V{}
	for range r.IntN(3) {
		data[one(r, keys...)] = value()
	}
	return data
}

func drawConfigMap(r *rand.Rand) any {
	keys := []string{"a", "b", "c.d", "a/b", "..", ""}
	return &v1.ConfigMap{
		Immutable:  one(r, nil, new(true), new(false)),
		Data:       drawData(r, func() string { return one(r, "", "x") }, keys...),
		BinaryData: drawData(r, func() []byte { return one(r, []byte{}, []byte{1}) }, keys...),
	}
}

func drawSecret(r *rand.Rand) any {
	keys := []string{".dockercfg", ".dockerconfigjson", "username", "password", "ssh-privatekey", "tls.crt", "tls.key", "a b"}
	value := func() string { return one(r, "", "{}", "[]", "x") }
	return &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Annotations: one(r, nil, map[string]string{"kubernetes.io/service-account.name": one(r, "", "a")})},
		Type: one(r, "", v1.SecretTypeOpaque, v1.SecretTypeDockercfg, v1.SecretTypeDockerConfigJson, v1.SecretTypeBasicAuth, v1.SecretTypeSSHAuth,
			v1.SecretTypeTLS, v1.SecretTypeServiceAccountToken, "example.com/x"),
		Immutable:  one(r, nil, new(true)),
		Data:       drawData(r, func() []byte { return []byte(value()) }, keys...),
		StringData: drawData(r, value, keys...),
	}
}

func drawNamespace(r *rand.Rand) any {
	n := &v1.Namespace{}
	for range r.IntN(3) {
		n.Spec.Finalizers = append(n.Spec.Finalizers, one(r, v1.FinalizerKubernetes, "x", "example.com/x", "a b/c", "orphan", "foregroundDeletion", ""))
	}
	return n
}

// drawTime returns a time or none.
func drawTime(r *rand.Rand) time.Time { return one(r, time.Time{}, time.Unix(1_700_000_000, 0)) }

func drawWord(r *rand.Rand) string {
	return one(r, "", "a", strings.Repeat("x", 128), strings.Repeat("x", 129))
}

func drawEvent(r *rand.Rand) any {
	e := &v1.Event{
		InvolvedObject: v1.ObjectReference{Namespace: one(r, "", "default", "other"), Name: one(r, "a", "b")},
		EventTime:      metav1.NewMicroTime(drawTime(r)), Reason: drawWord(r), Action: drawWord(r), ReportingInstance: drawWord(r),
		ReportingController: one(r, "", "a", "example.com/x", "a b"), Message: one(r, "", "x", strings.Repeat("x", 1025)), Type: one(r, "", "Normal", "Odd"),
		Count: one[int32](r, 0, 2),
	}
	if r.IntN(2) == 0 {
		e.FirstTimestamp, e.Source.Host = metav1.NewTime(drawTime(r)), one(r, "", "here")
	}
	return e
}

func drawNewEvent(r *rand.Rand) any {
	e := &eventsv1.Event{
		Regarding: v1.ObjectReference{Namespace: one(r, "default", "default", "other"), Name: one(r, "a", "a", "b")},
		EventTime: metav1.NewMicroTime(one(r, time.Unix(1_700_000_000, 0), time.Unix(1_700_000_000, 0), time.Time{})), Reason: one(r, "a", "a", drawWord(r)),
		Action: "act", ReportingInstance: one(r, "i", "i", drawWord(r)), ReportingController: one(r, "c", "c", "a b"), Note: one(r, "n", "n", "m"),
		Type: one(r, "Normal", "Normal", "Warning", "Odd"), DeprecatedCount: one[int32](r, 0, 0, 0, 1),
	}
	if r.IntN(2) == 0 {
		e.Series = &eventsv1.EventSeries{Count: one[int32](r, 1, 2, 3), LastObservedTime: metav1.NewMicroTime(drawTime(r))}
	}
	if r.IntN(6) == 0 {
		e.DeprecatedFirstTimestamp, e.DeprecatedSource.Component = metav1.NewTime(drawTime(r)), one(r, "", "x")
		e.Related = &v1.ObjectReference{Name: "r"}
	}
	return e
}
