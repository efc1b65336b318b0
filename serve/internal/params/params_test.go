package params_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/params"
)

// asked is a request for widgets of all namespaces, by a verb and with a query.
func asked(t *testing.T, verb, query string) params.Request {
	t.Helper()
	q, err := url.ParseQuery(query)
	require.NoError(t, err)
	return params.Request{
		Verb: verb, Group: "example.com", Version: "v1", Resource: "widgets", Labels: q.Get("labelSelector"), Fields: q.Get("fieldSelector"),
		Query: q, Kind: &registry.Kind{Group: "example.com", Version: "v1", Kind: "Widget"},
	}
}

// listed returns the parameters of a list, and its options.
func listed(t *testing.T, query string) (*params.List, engine.ListOptions) {
	t.Helper()
	l, err := asked(t, "list", query).List()
	require.NoError(t, err, query)
	opts, err := l.Options()
	require.NoError(t, err, query)
	return l, opts
}

// codeOf returns the code of a Status.
func codeOf(t *testing.T, err error) int {
	t.Helper()
	status, is := err.(apierrors.APIStatus)
	require.True(t, is, "%v", err)
	return int(status.Status().Code)
}

// A resourceVersion says how fresh an answer must be.
func TestList_IsAsFreshAsItsVersionSays(t *testing.T) {
	for query, want := range map[string]engine.Read{
		"":                  engine.Latest(),
		"resourceVersion=0": engine.Cached(),
		"resourceVersion=7": engine.NotOlderThan(7),
		"resourceVersion=7&resourceVersionMatch=NotOlderThan": engine.NotOlderThan(7),
		"resourceVersion=7&resourceVersionMatch=Exact":        engine.Exactly(7),
	} {
		_, opts := listed(t, query)
		require.Equal(t, want, opts.Read, query)
		if !strings.Contains(query, "Match") {
			read, err := asked(t, "get", query).Get()
			require.NoError(t, err)
			require.Equal(t, want, read, query)
		}
	}
	for _, version := range []string{"x", "-1", "07", "18446744073709551616"} {
		_, err := asked(t, "get", "resourceVersion="+version).Get()
		require.Equal(t, 400, codeOf(t, err), version)
	}
}

// Selectors that fix the namespace, or the name, too, leave few keys.
func TestList_ReadsTheKeysThatAreLeft(t *testing.T) {
	for _, c := range []struct {
		clusterScoped     bool
		namespace, fields string
		key, prefix       string
	}{
		{},
		{namespace: "a", prefix: "a/"},
		{namespace: "a", fields: "metadata.name=x", key: "a/x"},
		{fields: "metadata.name=x"},
		{fields: "metadata.namespace=a", prefix: "a/"},
		{fields: "metadata.namespace=a,metadata.name=x", key: "a/x"},
		{namespace: "a", fields: "metadata.name!=x", prefix: "a/"},
		{namespace: "a", fields: "metadata.namespace=b", prefix: "a/"}, // the user may read those of a, at most
		{namespace: "a", fields: "metadata.namespace=b,metadata.name=x", key: "a/x"},
		{namespace: "a", fields: "metadata.name=", prefix: "a/"}, // which no object has: the key would be none
		{clusterScoped: true},
		{clusterScoped: true, fields: "metadata.name="},
		{clusterScoped: true, fields: "metadata.name=x", key: "x"},
	} {
		r := asked(t, "list", "")
		r.Namespace, r.Fields, r.Kind.ClusterScoped = c.namespace, c.fields, c.clusterScoped
		l, err := r.List()
		require.NoError(t, err)
		require.Equal(t, []string{c.key, c.prefix}, []string{l.Key, l.Prefix}, "%+v", c)
	}
}

// A token continues the list that it is from, as it goes on in the next page.
func TestList_TokenContinuesItsListAlone(t *testing.T) {
	first, _ := listed(t, "limit=1&labelSelector=a%3Db")
	require.Empty(t, first.Seal(""))
	token := url.QueryEscape(first.Seal("the engine's"))
	for _, version := range []string{"", "&resourceVersion=0"} { // as it is in the first page of informers
		_, opts := listed(t, "limit=1&labelSelector=a%3Db&continue="+token+version)
		require.Equal(t, "the engine's", opts.Continue)
		require.Equal(t, engine.Latest(), opts.Read)
	}
	for _, query := range []string{"continue=" + token, "labelSelector=a%3Db&continue=e30", "labelSelector=a%3Db&continue=!", "labelSelector=a%3Db&resourceVersion=7&continue=" + token} {
		l, err := asked(t, "list", query).List()
		require.NoError(t, err)
		_, err = l.Options()
		require.Equal(t, 400, codeOf(t, err), query)
	}
}

// What does not parse is told, and all that contradicts.
func TestList_Refusals(t *testing.T) {
	for query, want := range map[string]int{
		"limit=x": 400, "limit=-1": 400, "timeoutSeconds=x": 400, "resourceVersion=x": 400,
		"labelSelector=%3D%3D": 400, "fieldSelector=a%3E": 400,
		"labelSelector=" + strings.Repeat("a", 16<<10+1): 400,
		"fieldSelector=" + strings.Repeat("a%3Db,", 101): 400,
		"sendInitialEvents=1":                            422,
		"resourceVersionMatch=Exact":                     422,
		"resourceVersion=7&resourceVersionMatch=Newest":  422,
	} {
		_, err := asked(t, "list", query).List()
		require.Equal(t, want, codeOf(t, err), query)
	}
	_, err := asked(t, "watch", "sendInitialEvents=1&resourceVersionMatch=Exact&continue=x").List()
	require.Equal(t, 422, codeOf(t, err))
	require.Len(t, err.(apierrors.APIStatus).Status().Details.Causes, 3)
}

// A watch has parameters that a list ignores.
func TestList_OfAWatch(t *testing.T) {
	l, err := asked(t, "watch", "timeoutSeconds=9&allowWatchBookmarks=1&progressNotify&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=7").List()
	require.NoError(t, err)
	require.Equal(t, 9*time.Second, l.Timeout)
	require.True(t, l.Bookmarks && l.Progress)
	require.False(t, *l.Initial)
	require.EqualValues(t, 7, l.Revision)
	l, err = asked(t, "watch", "resourceVersion=7").List()
	require.NoError(t, err)
	require.Nil(t, l.Initial)
}

// Such a watch is one with sendInitialEvents, and what contradicts that is told.
func TestList_OfAWatchOfNoRevisionBeginsWithTheState(t *testing.T) {
	for _, query := range []string{"", "resourceVersion=0"} {
		l, err := asked(t, "watch", query).List()
		require.NoError(t, err)
		require.True(t, *l.Initial)
		_, err = asked(t, "watch", query+"&continue=x").List()
		require.Equal(t, 422, codeOf(t, err))
	}
}

// A client that names no manager is known by its User-Agent. An apply needs a name.
func TestWrite_HasAManager(t *testing.T) {
	for agent, want := range map[string]string{"kubectl/v1 (linux)": "kubectl", "a\x00b": "ab", strings.Repeat("ä", 100): strings.Repeat("ä", 64), "": ""} {
		opts, err := asked(t, "update", "").Write(agent)
		require.NoError(t, err)
		require.Equal(t, want, opts.Manager)
	}
	opts, err := asked(t, "patch", "fieldManager=me&force=true&dryRun=All&fieldValidation=Strict").Apply()
	require.NoError(t, err)
	require.Equal(t, registry.WriteOptions{Manager: "me", Force: true, DryRun: true, Validation: registry.RefuseUnknown}, opts)
	_, err = asked(t, "patch", "").Apply()
	require.Equal(t, 422, codeOf(t, err))
}

// The Status of an option that is wrong names the options, as Kubernetes does.
func TestWrite_Refusals(t *testing.T) {
	for _, query := range []string{"dryRun=Some", "fieldValidation=Never", "fieldManager=%00", "fieldManager=" + strings.Repeat("x", 129), "force=1"} {
		_, err := asked(t, "patch", query).Write("")
		require.Equal(t, 422, codeOf(t, err), query)
		require.ErrorContains(t, err, "PatchOptions", query)
	}
}

// A name may break either of two rules: the answer says which.
func TestWrite_NameOfAManagerIsShortAndPrintable(t *testing.T) {
	for name, want := range map[string]string{strings.Repeat("ä", 64): "", strings.Repeat("ä", 64) + "x": "FieldValueTooLong", "a\x00b": "FieldValueInvalid"} {
		opts, err := asked(t, "update", "fieldManager="+url.QueryEscape(name)).Write("")
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, name, opts.Manager)
			continue
		}
		causes := err.(apierrors.APIStatus).Status().Details.Causes
		require.Len(t, causes, 1)
		require.Equal(t, want+" fieldManager", string(causes[0].Type)+" "+causes[0].Field)
	}
}

// The options of a deletion are in its body or, without one, in the query.
func TestDelete_OptionsOfBodyOrQuery(t *testing.T) {
	orphan := metav1.DeletePropagationOrphan
	want := registry.DeleteOptions{UID: "u", Revision: 7, Propagation: orphan, DryRun: true, GracePeriodSeconds: new(int64(3))}
	opts, _, err := asked(t, "delete", "uid=u&resourceVersion=7&propagationPolicy=Orphan&dryRun=All&gracePeriodSeconds=3").Delete(nil)
	require.NoError(t, err)
	require.Equal(t, want, opts)
	opts, _, err = asked(t, "delete", "propagationPolicy=Foreground").Delete([]byte(`{"kind":"DeleteOptions","preconditions":{"uid":"u","resourceVersion":"7"},"orphanDependents":true,"dryRun":["All"],"gracePeriodSeconds":3}`))
	require.NoError(t, err)
	require.Equal(t, want, opts)
	opts, _, err = asked(t, "deletecollection", "resourceVersion=7").Delete(nil)
	require.NoError(t, err)
	require.Zero(t, opts, "it says which are deleted")
}

// The older form of the propagation says whether the dependents stay.
// Such a deletion must never be taken for one of any object.
func TestDelete_OfUnreadableObjectsAloneIsNoOtherDeletion(t *testing.T) {
	const only = "ignoreStoreReadErrorWithClusterBreakingPotential"
	_, _, ofQuery := asked(t, "delete", only+"=true&dryRun=All").Delete(nil)
	_, _, ofBody := asked(t, "delete", "").Delete([]byte(`{"` + only + `":true}`))
	require.ErrorIs(t, ofQuery, params.ErrUnreadableOnly)
	require.ErrorIs(t, ofBody, params.ErrUnreadableOnly)
	_, _, no := asked(t, "delete", only+"=false&uid=u").Delete(nil)
	require.NoError(t, no)
	_, _, ofMany := asked(t, "deletecollection", only+"=true").Delete(nil)
	require.Equal(t, 422, codeOf(t, ofMany))
	for _, other := range []string{"propagationPolicy=Orphan", "orphanDependents=true", "gracePeriodSeconds=0", "uid=u", "resourceVersion=7"} {
		_, _, err := asked(t, "delete", only+"=true&"+other).Delete(nil)
		require.Equal(t, 422, codeOf(t, err), other)
		require.Equal(t, only, err.(apierrors.APIStatus).Status().Details.Causes[0].Field)
	}
}

func TestDelete_OrphanDependentsIsAnOlderForm(t *testing.T) {
	for query, want := range map[string]metav1.DeletionPropagation{
		"orphanDependents=true": metav1.DeletePropagationOrphan, "orphanDependents=false": metav1.DeletePropagationBackground, "": "",
	} {
		opts, _, err := asked(t, "delete", query).Delete(nil)
		require.NoError(t, err)
		require.Equal(t, want, opts.Propagation, query)
	}
}

// A precondition that says nothing is met by no object, rather than by all.
func TestDelete_PreconditionsThatNoObjectMeets(t *testing.T) {
	for _, version := range []string{"", "0", "07", "x"} {
		opts, _, err := asked(t, "delete", "").Delete([]byte(`{"preconditions":{"uid":"","resourceVersion":"` + version + `"}}`))
		require.NoError(t, err)
		require.NotEmpty(t, opts.UID)
		require.NotZero(t, opts.Revision, version)
	}
}

// Metrics tell dry runs from others, even those that are refused.
func TestDelete_Refusals(t *testing.T) {
	for query, want := range map[string]int{"gracePeriodSeconds=x": 400, "gracePeriodSeconds=": 400, "propagationPolicy=Never&dryRun=All": 422, "propagationPolicy=Orphan&orphanDependents=1&dryRun=All": 422, "propagationPolicy=": 422, "dryRun=Some": 422} {
		opts, _, err := asked(t, "delete", query).Delete(nil)
		require.Equal(t, want, codeOf(t, err), query)
		require.Equal(t, strings.Contains(query, "dryRun=All"), opts.DryRun, query)
	}
	for _, body := range []string{"x", `{"kind":"Widget"}`} {
		_, _, err := asked(t, "delete", "").Delete([]byte(body))
		require.Equal(t, 400, codeOf(t, err), body)
	}
}

// Kubernetes tells only clients that use the older form that a deletion has begun.
func TestDelete_OnlyTheOlderFormIsToldThatItHasBegun(t *testing.T) {
	for query, want := range map[string]int{
		"": 200, "propagationPolicy=Background": 200, "propagationPolicy=Foreground": 200,
		"orphanDependents=true": 200, "orphanDependents=": 200, "orphanDependents=false": 202, "orphanDependents=0": 202,
	} {
		_, marked, err := asked(t, "delete", query).Delete(nil)
		require.NoError(t, err)
		require.Equal(t, want, marked, query)
	}
	opts, marked, err := asked(t, "delete", "orphanDependents=true").Delete([]byte(`{"orphanDependents":false}`))
	require.NoError(t, err)
	require.Equal(t, 202, marked)
	require.Equal(t, metav1.DeletePropagationBackground, opts.Propagation)
}

func TestDelete_TellsAllThatIsWrongWithThePolicy(t *testing.T) {
	_, _, err := asked(t, "delete", "").Delete([]byte(`{"orphanDependents":true,"propagationPolicy":"Up"}`))
	var types []metav1.CauseType
	for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes {
		require.Equal(t, "propagationPolicy", cause.Field)
		types = append(types, cause.Type)
	}
	require.Equal(t, []metav1.CauseType{metav1.CauseTypeFieldValueInvalid, metav1.CauseTypeFieldValueNotSupported}, types)
}
