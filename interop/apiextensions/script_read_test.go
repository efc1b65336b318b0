package apiextensions

// discovery asks what there is.
func discovery(s *script) {
	s.same(get("/apis/example.com"))
	s.same(get("/apis/example.com/v1"))
	s.differ("a path that is not there is a Status", get("/apis/example.com/v1/gadgets"))
	s.differ("there is no such resource, whether the object is there or not", get(widgets+"/none/nothing"))
}

// reads get and list widgets.
func reads(s *script) {
	s.same(get(widgets + "/a"))
	s.same(get(widgets + "/none"))
	s.same(get(widgets + "/a?resourceVersion=0"))
	for _, query := range []string{
		"limit=2", "limit=0", "limit=x", "limit=99999999999999999999", "limit=2", "continue=$continue$", "limit=2", "limit=2&continue=$continue$", "continue=abc",
		"limit=2&resourceVersion=0", "resourceVersion=0", "resourceVersion=x", "resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan", "resourceVersion=0&resourceVersionMatch=Exact",
		"resourceVersion=0&resourceVersionMatch=NotOlderThan", "resourceVersion=1&resourceVersionMatch=Nope", "resourceVersion=$rv$&resourceVersionMatch=Exact",
		"labelSelector=a%3Db", "labelSelector=a+in+(b", "labelSelector=!!", "labelSelector=a%3D%3Db,c!%3Dd", "labelSelector=a>1", "labelSelector=a+notin+()", "labelSelector=A_/x",
		"fieldSelector=metadata.name%3Da", "fieldSelector=metadata.namespace%3Ddefault", "fieldSelector=metadata.namespace%3Dother", "fieldSelector=spec.color%3Dred", "fieldSelector=spec.color!%3Dgrey",
		"fieldSelector=spec.size%3D1", "fieldSelector=spec.flag%3D1", "fieldSelector=nope", "fieldSelector=status.size%3D1", "fieldSelector=metadata.name%3Da,spec.color%3Dgrey", "fieldSelector=metadata.uid%3D1", "fieldSelector=,",
		"fieldSelector=metadata.name%3D", "fieldSelector=metadata.name%3D%3Da", "fieldSelector=metadata.name%3Da,metadata.name%3Db", "fieldSelector=metadata.name", "labelSelector=,", "labelSelector=a,,b", "labelSelector=a%3D",
		"resourceVersion=9223372036854775807", "resourceVersion=9223372036854775807&resourceVersionMatch=Exact", "watch=0", "watch=False", "timeout=x", "timeout=5s", "timeout=0", "timeout=-1s",
		"timeoutSeconds=x", "timeoutSeconds=0", "sendInitialEvents=true", "sendInitialEvents=false", "allowWatchBookmarks=true", "watch=false", "pretty=1",
	} {
		s.same(get(widgets + "?" + query))
	}
	s.same(get("/apis/example.com/v1/widgets?fieldSelector=metadata.namespace%3Ddefault&limit=3"))
	s.same(get(things + "?limit=1"))
	const wrong = "a request that is wrong is not a failure of the server"
	s.differ(wrong, get(widgets+"/a?resourceVersion=abc"))
	s.differ(wrong, get(widgets+"/a?resourceVersion=-1"))
	s.differ("a limit below zero is an error", get(widgets+"?limit=-1"))
	s.differ("a list with a limit is not older than its revision, and not exactly of it", get(widgets+"?limit=2&resourceVersion=1"))
	s.differUnlessPassedOn("what storage had then is not there", get(widgets+"?resourceVersion=1&resourceVersionMatch=Exact"))
}

// watches follow widgets for a second.
func watches(s *script) {
	of := func(query string) request { return get(widgets + "?watch=true&timeoutSeconds=1" + query) }
	s.same(get(widgets + "?limit=1")) // of which $rv$ is the revision
	for _, query := range []string{
		"", "&resourceVersion=0", "&resourceVersion=$rv$", "&sendInitialEvents=true", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
		"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1", "&resourceVersionMatch=NotOlderThan",
		"&allowWatchBookmarks=true", "&resourceVersion=0&allowWatchBookmarks=true", "&resourceVersion=$rv$&allowWatchBookmarks=true", "&continue=x",
		"&limit=1", "&fieldSelector=metadata.name%3Da", "&labelSelector=!!", "&fieldSelector=zz%3D1",
	} {
		s.same(of(query))
	}
	s.same(get(widgets + "/a?watch=true&timeoutSeconds=1"))
	s.same(get(widgets + "?watch=true&timeoutSeconds=x"))
	s.differ("a request that is wrong is not a failure of the server", of("&resourceVersion=abc"))
	s.differ("an event of a revision that is too old tells the oldest one, too", of("&resourceVersion=1"))
	s.differ("a revision that has not come yet is an error, and not an empty watch", of("&resourceVersion=99999999999999999"))
	s.same(get("/apis/example.com/v1/watch/namespaces/default/widgets?timeoutSeconds=1&fieldSelector=metadata.name%3Da"))
}

// forms reads the widget a, a list of it, and a watch of it, in the forms that clients accept.
func forms(s *script) {
	const list = widgets + "?fieldSelector=metadata.name%3Da"
	paths := []string{widgets + "/a", list, list + "&watch=true&timeoutSeconds=1"}
	all := func(check func(request), accept string) {
		for _, path := range paths {
			check(getAs(accept, path))
		}
	}
	differ := func(why string) func(request) { return func(r request) { s.differ(why, r) } }
	for _, accept := range []string{
		"application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v2;g=meta.k8s.io", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
		"text/html", "application/vnd.kubernetes.protobuf,application/json", "*/*", "application/*", "text/plain, */*;q=0.1", "application/cbor", "application/json;stream=watch", "", ",",
		"application/json;as=Nope;v=v1;g=meta.k8s.io,application/json;q=0.5",
	} {
		all(s.same, accept)
	}
	for _, include := range []string{"None", "Metadata", "Object", "Nope"} {
		s.same(getAs("application/json;as=Table;v=v1;g=meta.k8s.io", list+"&includeObject="+include))
	}
	all(differ("there is one version of tables"), "application/json;as=Table;v=v1beta1;g=meta.k8s.io")
	all(differ("objects are JSON"), "application/yaml")
	all(differ("an error is JSON"), "application/vnd.kubernetes.protobuf")
	all(differ("q=0 is what a client does not accept, by RFC 9110"), "application/json;q=0")
	s.same(getAs("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", paths[0]))
	s.same(getAs("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", paths[1]))
	s.differ("clients that ask for one get it in lists, too", getAs("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", paths[1]))
}
