package corekinds

import (
	"context"
	"slices"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// reportAgainAfter is how long a report is not repeated that another one has replaced. Servers that share storage may find
// different errors: each would otherwise replace what the other has written, at once and for ever.
const reportAgainAfter = 10 * time.Minute

// remains is why a namespace is still there: the kinds of which objects are left, the finalizers of these, and why some
// could not be deleted.
type remains struct{ left, finalizers, failed string }

// report says in the status of a namespace why it is still there.
func (k *Kinds) report(ctx context.Context, o *engine.Object[core.Namespace], m *mark, left *leftovers, failed error) error {
	r, now := remains{left: counted(left.objects, "has"), finalizers: counted(left.finalizers, "in")}, k.cfg.Host.Clock().Now()
	if failed != nil {
		r.failed = failed.Error()
	}
	if !m.mayReport(r, o.Value.Status.Conditions, now) {
		return nil
	}
	_, err := k.namespaces.UpdateStatus(ctx, o.Key, func(old *engine.Object[core.Namespace]) (core.Namespace, error) {
		n := old.Value
		if changed := r.conditions(n.Status.Conditions, metav1.NewTime(now)); changed != nil {
			n.Status.Conditions = changed
		}
		return n, nil
	}, registry.WriteOptions{UID: string(o.Value.UID)})
	if err == nil {
		m.reported, m.reportedAt = r, now
	}
	return orGone(err)
}

// mayReport reports whether the status is to be written, so that it says what remains. The write has the namespace looked
// at again at once, so one of other texts alone waits: an error may have another text each time.
func (m *mark) mayReport(r remains, before []core.NamespaceCondition, now time.Time) bool {
	after, ago := r.conditions(before, metav1.NewTime(now)), now.Sub(m.reportedAt)
	sameButTexts := slices.EqualFunc(before, after, func(a, b core.NamespaceCondition) bool { return a.Type == b.Type && a.Status == b.Status })
	switch {
	case after == nil, r == m.reported && ago < reportAgainAfter, sameButTexts && ago < longestPause:
		return false
	}
	return true
}

// conditions returns the conditions of a namespace of which that remains; nil if they are as they were.
func (r remains) conditions(before []core.NamespaceCondition, at metav1.Time) []core.NamespaceCondition {
	now, changed := slices.Clone(before), false
	for _, c := range []core.NamespaceCondition{
		condition(core.NamespaceContentRemaining, r.left,
			"SomeResourcesRemain", "Some resources are remaining: ", "ContentRemoved", "All content successfully removed"),
		condition(core.NamespaceFinalizersRemaining, r.finalizers,
			"SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: ", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
		condition(core.NamespaceDeletionContentFailure, r.failed,
			"ContentDeletionFailed", "", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
	} {
		changed = setCondition(&now, c, at) || changed
	}
	if !changed {
		return nil
	}
	return now
}

// condition returns a condition that is true if something is wrong, with a reason and a text that ends with it, and
// otherwise false, with another reason and text.
func condition(of core.NamespaceConditionType, wrong, reason, text, otherwise, otherText string) core.NamespaceCondition {
	if wrong == "" {
		return core.NamespaceCondition{Type: of, Status: core.ConditionFalse, Reason: otherwise, Message: otherText}
	}
	return core.NamespaceCondition{Type: of, Status: core.ConditionTrue, Reason: reason, Message: text + wrong}
}

// setCondition sets a condition, and reports whether it differs from what was there. One that says that nothing is
// wrong is left out if there was none.
func setCondition(all *[]core.NamespaceCondition, c core.NamespaceCondition, at metav1.Time) (changed bool) {
	i := slices.IndexFunc(*all, func(o core.NamespaceCondition) bool { return o.Type == c.Type })
	c.LastTransitionTime = at
	switch {
	case i < 0 && c.Status == core.ConditionFalse:
		return false
	case i < 0:
		*all = append(*all, c)
		return true
	}
	before := (*all)[i]
	if before.Status == c.Status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	(*all)[i] = c
	return before.Status != c.Status || before.Reason != c.Reason || before.Message != c.Message
}
