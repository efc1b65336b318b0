package objectmeta_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry/internal/objectmeta"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = metav1.Unix(1_000_000, 0)

// Whatever a kind allows, the path of its objects must be one.
func TestNameRule_AllowsNoNameThatAPathCannotHave(t *testing.T) {
	rule := objectmeta.NameRule(func(string, bool) []string { return nil })
	for _, name := range []string{".", "..", "a/b", "a%2fb", `a\b`, "a\x00b", "a\nb", "a\x7fb", "\xff", strings.Repeat("x", 254)} {
		require.NotEmpty(t, rule(name, false), "%q", name)
	}
	for _, name := range []string{"system:node", "Upper_Case", "a b", "fe80::1", strings.Repeat("x", 253)} {
		require.Empty(t, rule(name, false), "%q", name)
	}
	require.Empty(t, rule(".", true), "it is the beginning of a name")
	require.NotEmpty(t, objectmeta.NameRule(nil)("a b", false), "by default names are DNS subdomains")
}

func TestGenerateName_StaysWithinALabel(t *testing.T) {
	for _, base := range []string{"", "a-", strings.Repeat("x", 100)} {
		name := objectmeta.GenerateName(base)
		require.Len(t, name, min(len(base), 58)+5)
		require.True(t, strings.HasPrefix(name, base[:min(len(base), 58)]))
		require.NotEqual(t, name, objectmeta.GenerateName(base))
	}
}

// metadata returns metadata in which no field is empty.
func metadata() *metav1.ObjectMeta {
	m := &metav1.ObjectMeta{
		Name: "a", GenerateName: "a-", Namespace: "default", UID: "u", ResourceVersion: "7", Generation: 3,
		CreationTimestamp: now, DeletionTimestamp: &now, DeletionGracePeriodSeconds: new(int64(5)),
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"x/y"},
		OwnerReferences: []metav1.OwnerReference{{UID: "o"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "me"}},
	}
	m.SetSelfLink("/a")
	return m
}

func TestSystemFields_AreNotTheWriters(t *testing.T) {
	sent, want := metadata(), metadata()
	want.SetSelfLink("")
	want.UID, want.Generation, want.CreationTimestamp = "", 0, metav1.Time{}
	want.DeletionTimestamp, want.DeletionGracePeriodSeconds = nil, nil
	objectmeta.DropSystemFields(sent)
	require.Equal(t, want, sent)

	objectmeta.Identify(sent, now)
	require.NotEmpty(t, sent.UID)
	require.Equal(t, now, sent.CreationTimestamp)
	require.EqualValues(t, 1, sent.Generation)

	want = metadata()
	want.SetSelfLink("")
	objectmeta.KeepSystemFields(sent, metadata())
	require.Equal(t, want, sent)
}

func TestCopyClientFields_CopiesNothingElse(t *testing.T) {
	to, want := &metav1.ObjectMeta{Name: "b"}, metadata()
	objectmeta.CopyClientFields(to, metadata())
	require.Equal(t, &metav1.ObjectMeta{
		Name: "b", Labels: want.Labels, Annotations: want.Annotations, Finalizers: want.Finalizers, OwnerReferences: want.OwnerReferences,
	}, to)
}

func TestDedupOwners_KeepsReferencesThatDiffer(t *testing.T) {
	first, other := metav1.OwnerReference{UID: "u", Controller: new(true)}, metav1.OwnerReference{UID: "u", Controller: new(false)}
	m := &metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{first, other, {UID: "u"}}}
	require.False(t, objectmeta.DedupOwners(m))
	require.Len(t, m.OwnerReferences, 3)
	m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{UID: "u", Controller: new(true)})
	require.True(t, objectmeta.DedupOwners(m))
	require.Equal(t, []metav1.OwnerReference{first, other, {UID: "u"}}, m.OwnerReferences)
}

// The library sorts entries by their times, so that a new time alone may change their order.
func TestSameManagers_IgnoresTimes(t *testing.T) {
	entry := func(manager string, at int64) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: new(metav1.Unix(at, 0))}
	}
	before := []metav1.ManagedFieldsEntry{entry("a", 1), entry("b", 2)}
	require.True(t, objectmeta.SameManagers(before, []metav1.ManagedFieldsEntry{entry("b", 2), entry("a", 3)}))
	require.False(t, objectmeta.SameManagers(before, before[:1]))
	require.False(t, objectmeta.SameManagers(before, []metav1.ManagedFieldsEntry{entry("a", 1), entry("c", 2)}))
	require.EqualValues(t, 1, before[0].Time.Unix(), "they are the caller's")
}

func TestValidateUpdate_AllowsNoNewFinalizersDuringADeletion(t *testing.T) {
	old := &metav1.ObjectMeta{Name: "a", UID: "u", CreationTimestamp: now, DeletionTimestamp: &now, Finalizers: []string{"x/y"}}
	next := old.DeepCopy()
	next.Finalizers = append(next.Finalizers, "new/one")
	wrong := objectmeta.ValidateUpdate(next, old, "7")
	require.Len(t, wrong, 2, "as Kubernetes has it")
	require.ErrorContains(t, wrong.ToAggregate(), `metadata.finalizers: Forbidden: no new finalizers`)
	require.Empty(t, next.ResourceVersion)
	require.Empty(t, objectmeta.ValidateUpdate(old.DeepCopy(), old, "7"))
	old.DeletionTimestamp, next.DeletionTimestamp = nil, nil
	require.Empty(t, objectmeta.ValidateUpdate(next, old, "7"))
}

func TestGracePeriod_IsOfTheRuleUntilTheObjectHasOne(t *testing.T) {
	// asFor returns what is asked for, and nine seconds otherwise.
	asFor := func(asked *int64) (int64, bool) {
		if asked == nil {
			return 9, true
		}
		return *asked, true
	}
	deleted := func(grace *int64) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{DeletionTimestamp: &now, DeletionGracePeriodSeconds: grace}
	}
	for _, c := range []struct {
		m     *metav1.ObjectMeta
		asked *int64
		want  int64
	}{
		{&metav1.ObjectMeta{}, nil, 9}, {&metav1.ObjectMeta{}, new(int64(20)), 20}, {&metav1.ObjectMeta{}, new(int64(-1)), 0},
		{deleted(nil), new(int64(3)), 0}, {deleted(new(int64(0))), new(int64(3)), 0},
		{deleted(new(int64(5))), nil, 5}, {deleted(new(int64(5))), new(int64(3)), 3}, {deleted(new(int64(5))), new(int64(8)), 5},
	} {
		require.Equal(t, c.want, objectmeta.GracePeriod(c.m, c.asked, asFor))
	}
	require.Zero(t, objectmeta.GracePeriod(&metav1.ObjectMeta{}, nil, func(*int64) (int64, bool) { return 9, false }))
}

func TestMark_ShortensAPeriodAndNeverExtendsIt(t *testing.T) {
	m := &metav1.ObjectMeta{Generation: 1, Finalizers: []string{"x/y"}}
	mark := func(seconds int64, after time.Duration) {
		objectmeta.Mark(m, seconds, metav1.NewTime(now.Add(after)))
	}
	requireMark := func(at time.Duration, seconds int64) {
		t.Helper()
		require.Equal(t, now.Add(at), m.DeletionTimestamp.Time)
		require.Equal(t, seconds, *m.DeletionGracePeriodSeconds)
		require.EqualValues(t, 2, m.Generation, "a mark is one change")
	}
	mark(60, 0)
	requireMark(time.Minute, 60)
	mark(90, time.Second)
	requireMark(time.Minute, 60)
	mark(30, time.Second)
	requireMark(30*time.Second, 30)
	require.True(t, objectmeta.InGrace(m))
	mark(10, 20*time.Second)
	requireMark(20*time.Second, 1)
	mark(1, 22*time.Second)
	requireMark(20*time.Second, 1) // the same period again is not shorter, though it is over
	mark(0, 25*time.Second)
	requireMark(25*time.Second, 0)
	require.False(t, objectmeta.InGrace(m))
	require.False(t, objectmeta.MayBeRemoved(m), "a finalizer keeps it")
	m.Finalizers = nil
	require.True(t, objectmeta.MayBeRemoved(m))
	require.False(t, objectmeta.MayBeRemoved(&metav1.ObjectMeta{}), "it is not being deleted")
}

func TestMark_LongPeriodDoesNotOverflow(t *testing.T) {
	m := &metav1.ObjectMeta{}
	objectmeta.Mark(m, math.MaxInt64, now)
	require.Zero(t, m.Generation, "the kind has none")
	require.True(t, m.DeletionTimestamp.After(now.Time))
	require.Equal(t, int64(math.MaxInt64), *m.DeletionGracePeriodSeconds)
}
