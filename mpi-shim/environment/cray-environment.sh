# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
#
# The variables that Cray's compiler wrappers and modules set, for build systems that read them instead of pkg-config
# (GASNet, Charm++, Chapel, MPICH):
#
#   . cray-environment.sh        with our modules in PKG_CONFIG_PATH or installed
#
# Values come from pkg-config at that moment; a module that is not there leaves its variables alone. Source:
# spec/cray-runtime.md 1.4.

for emunic_module in cray-pmi cray-ugni cray-gni-headers cray-dmapp cray-portals cray-udreg cray-rca cray-alpslli \
    cray-alpsutil; do
    pkg-config --exists "$emunic_module" 2>/dev/null || continue
    # cray-gni-headers -> CRAY_GNI_HEADERS
    emunic_name=$(printf '%s' "$emunic_module" | tr 'a-z-' 'A-Z_')
    eval "export ${emunic_name}_INCLUDE_OPTS=\$(pkg-config --cflags $emunic_module)"
    eval "export ${emunic_name}_POST_LINK_OPTS=\$(pkg-config --libs $emunic_module)"
    case :${PE_PKGCONFIG_LIBS-}: in
    *:"$emunic_module":*) ;;
    *) PE_PKGCONFIG_LIBS=$emunic_module${PE_PKGCONFIG_LIBS:+:$PE_PKGCONFIG_LIBS} ;;
    esac
done
CRAY_PMI_PREFIX=$(pkg-config --variable=prefix cray-pmi)
# gemini for those who want that, with `emunic run --machine gemini`.
CRAYPE_NETWORK_TARGET=${CRAYPE_NETWORK_TARGET:-aries}
CRAYPE_LINK_TYPE=dynamic
XTPE_NETWORK_TARGET=$CRAYPE_NETWORK_TARGET
XTPE_LINK_TYPE=dynamic
export PE_PKGCONFIG_LIBS CRAY_PMI_PREFIX CRAYPE_NETWORK_TARGET CRAYPE_LINK_TYPE XTPE_NETWORK_TARGET XTPE_LINK_TYPE
unset emunic_module emunic_name
