# title: signatures are enforced and the client has none
# needs: deb
# cmdline: module.sig_enforce=1

settled_in blocked signature-rejected
